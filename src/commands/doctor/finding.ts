import type { Json } from '../../shared/json.js';

interface Said {
  /** What was looked at; scripts go by it, so it stays. */
  readonly name: string;
  /** In one sentence, without a full stop. */
  readonly message: string;
  readonly details?: { readonly [key: string]: Json | undefined };
}

/** What a check has found. Whoever is told that something is wrong is told what mends it. */
export type Finding =
  | (Said & { readonly status: 'ok' | 'none' })
  | (Said & { readonly status: 'warning' | 'broken'; readonly fix: string });

/** Findings about one part of the way from Claude Code to Langfuse. */
export interface Part {
  readonly title: string;
  readonly findings: readonly Finding[];
}

export function ok(name: string, message: string, details: Said['details'] = {}): Finding {
  return { name, status: 'ok', message, details };
}

/** There is nothing to look at, or it could not be looked at, and that is told elsewhere. */
export function none(name: string, message: string, details: Said['details'] = {}): Finding {
  return { name, status: 'none', message, details };
}

export function warning(name: string, message: string, fix: string, details: Said['details'] = {}): Finding {
  return { name, status: 'warning', message, fix, details };
}

export function broken(name: string, message: string, fix: string, details: Said['details'] = {}): Finding {
  return { name, status: 'broken', message, fix, details };
}
