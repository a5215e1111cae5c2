import type { Json } from '../shared/json.js';

export type Level = 'DEFAULT' | 'WARNING' | 'ERROR';

/** What started a run of Claude Code, as far as the run's environment says: its turns are part of that. */
export interface Caller {
  /** A span in the caller's own trace: the turns hang below it. */
  readonly parent?: { readonly trace: string; readonly span: string } | undefined;
  /** What the trace ids are derived from, so that the caller knows them in advance. */
  readonly seed?: string | undefined;
  /** Which CI job it was. */
  readonly metadata?: { readonly [name: string]: string } | undefined;
}

export type Usage = { readonly [kind: string]: number };

/** What Langfuse reads of a trace from each of its observations: in v4 there is no other place for it. */
export interface Trace {
  readonly id: string;
  /** Another program's span, below which its root hangs: then the trace's name, input and metadata are that program's. */
  readonly parentId: string | undefined;
  /**
   * What the ids of its spans are made of: its own id, or in another program's trace, where turns are side by side, the id
   * that the turn's own would have. Calls of one name in two turns (gateways count from 1) must not be one.
   */
  readonly scope: string;
  readonly name: string;
  readonly sessionId: string;
  readonly userId: string | undefined;
  readonly tags: readonly string[];
  readonly environment: string | undefined;
  readonly release: string | undefined;
  readonly metadata: { readonly [key: string]: Json };
}

/** One thing that Langfuse shows: times are in ms since 1970, what is undefined is not sent. */
export interface Observation {
  readonly type: 'agent' | 'generation' | 'tool' | 'event';
  readonly trace: Trace;
  readonly id: string;
  readonly parentId: string | undefined;
  readonly name: string;
  readonly startTime: number;
  readonly endTime: number;
  readonly completionStartTime?: number | undefined;
  readonly input?: Json | undefined;
  readonly output?: Json | undefined;
  readonly metadata: { readonly [key: string]: Json };
  readonly level: Level;
  readonly statusMessage?: string | undefined;
  readonly model?: string | undefined;
  readonly modelParameters?: { readonly [name: string]: string | number } | undefined;
  readonly usage?: Usage | undefined;
  /** The images and documents that its fields refer to. */
  readonly media?: readonly Media[];
  /** What Claude Code calls the request that a generation answers. */
  readonly request?: string | undefined;
  /** The last transcript line that it rests on: it is new where that line is. */
  readonly line: number;
}

/** Bytes that go beside an observation, never in it. */
export interface Media {
  readonly field: 'input' | 'output';
  /** What stands for it in the field, in the words of Langfuse. */
  readonly reference: string;
  /** What stands there where it does not leave the machine, or cannot. */
  readonly placeholder: string;
  readonly contentType: string;
  /** In base64. */
  readonly sha256: string;
  readonly length: number;
  readonly bytes: () => Uint8Array;
}
