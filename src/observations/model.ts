import type { Json } from '../shared/json.js';
import type { TokenKind } from '../transcript/file/token-kinds.js';
import type { ObservationKey } from './metadata-keys.js';
import type { Redact } from './redaction/redact.js';

/** How much of what was said and done leaves the machine. */
export type Capture = 'full' | 'no_tool_io' | 'metadata';

export interface ContentSettings {
  readonly maxChars: number;
  /** Undefined if secrets are sent as they are. */
  readonly redact: Redact | undefined;
  readonly capture: Capture;
  /** Whether images and documents are uploaded. */
  readonly media: boolean;
  /**
   * Whether a generation's input is only what is new since the last response, all that was said in the turn before, or the whole
   * request.
   */
  readonly input: 'answered' | 'turn' | 'request';
}

/** What the environment of a run says about the program that started Claude Code. */
export interface Caller {
  /** A span in the caller's own trace: the turns hang below it. */
  readonly parent?: { readonly trace: string; readonly span: string } | undefined;
  /** Trace ids are derived from it, so that the caller knows them in advance. */
  readonly seed?: string | undefined;
  /** The experiment that this run is an item of, by the ends of Langfuse's attributes. */
  readonly experiment?: { readonly [attribute: string]: string } | undefined;
  /** Describes the CI job. */
  readonly metadata?: { readonly [name: string]: string } | undefined;
}

export type Usage = { readonly [kind in TokenKind | 'total']?: number };

/** What Langfuse knows of a trace. It reads this from each observation: in v4 there is no other place for it. */
export interface Trace {
  readonly id: string;
  /** The caller's span above its root. If it has one, the trace's name, input and metadata are the caller's. */
  readonly parentId: string | undefined;
  /** The name of the caller's trace, if the caller has said it. */
  readonly callerName?: string | undefined;
  readonly experiment?: { readonly [attribute: string]: string } | undefined;
  /**
   * Span ids are derived from it. It is the trace's id; in a caller's trace, which may hold several turns, it is the id
   * that the turn's own trace would have: some gateways count tool calls from 1 in each turn.
   */
  readonly scope: string;
  readonly name: string;
  readonly sessionId: string;
  readonly userId: string | undefined;
  readonly tags: readonly string[];
  readonly environment: string | undefined;
  readonly release: string | undefined;
  /** Claude Code's. */
  readonly version: string | undefined;
  /** Sent with the root. What the user has added is sent with every observation. */
  readonly metadata: { readonly [key: string]: Json };
}

/** One thing that Langfuse shows. Times are in ms since 1970; what is undefined is not sent. */
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
  /** Those of the type (metadata-keys.ts), and in a caller's trace, at a turn's root, also those of the turn's trace. */
  readonly metadata: { readonly [key: string]: Json };
  readonly level: 'DEFAULT' | 'WARNING' | 'ERROR';
  readonly statusMessage?: string | undefined;
  readonly model?: string | undefined;
  readonly modelParameters?: { readonly [name: string]: string | number } | undefined;
  readonly usage?: Usage | undefined;
  /** In dollars, by kind. Langfuse computes no others for an observation that has any. */
  readonly cost?: { readonly [kind: string]: number } | undefined;
  /** The images and documents that its input and output refer to. */
  readonly media?: readonly Media[];
  /** Claude Code's id of the request that a generation answers. */
  readonly requestRef?: string | undefined;
  /** The last transcript line that it is built from. If that line is new, so is the observation. */
  readonly line: number;
}

/** An observation before its content is captured and sanitized. */
export type ObservationDraft = Omit<Observation, 'trace' | 'input' | 'output' | 'metadata' | 'modelParameters'> & {
  readonly input?: unknown;
  readonly output?: unknown;
  readonly metadata: { readonly [key in ObservationKey]?: Json | undefined };
  readonly modelParameters?: { readonly [name: string]: string | number | undefined } | undefined;
  /** Replaces a status message that may repeat what a tool returned, where that is not captured. */
  readonly statusWithoutTools?: string | undefined;
  /** How it ended, if without an answer: in words that repeat no content. It gets an output that says so. */
  readonly unanswered?: string | undefined;
  /** How something ended whose answer was broken off, in words that repeat no content. */
  readonly brokenOff?: string | undefined;
};

/** An image or a document. Its bytes are uploaded beside the observation, never within. */
export interface Media extends MediaFile {
  readonly field: 'input' | 'output';
}

/** An image or a document, before it is known in which field it is referred to. */
export interface MediaFile {
  /** Langfuse's reference to the upload, as it stands in the field. */
  readonly reference: string;
  /** Replaces the reference if the upload is not allowed, or fails. */
  readonly placeholder: string;
  readonly contentType: string;
  /** In base64. */
  readonly sha256: string;
  readonly length: number;
  readonly bytes: () => Uint8Array;
}
