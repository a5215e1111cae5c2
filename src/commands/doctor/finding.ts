import type { Json } from '../../shared/json.js';

type Details = { readonly [key: string]: Json | undefined };

export interface Finding {
  /** Scripts look findings up by name, so names must not change. */
  readonly name: string;
  /** `none`: there was nothing to check, or it could not be checked. */
  readonly status: 'ok' | 'warning' | 'broken' | 'none';
  /** One sentence, without a full stop. */
  readonly message: string;
  /** What the user should do. Present if the status is `warning` or `broken`. */
  readonly fix?: string;
  readonly details: Details;
}

/** Starts a finding, for example `about('proxy').none('not used')`. */
export function about(name: string, details: Details = {}) {
  return {
    ok: (message: string): Finding => ({ name, status: 'ok', message, details }),
    none: (message: string): Finding => ({ name, status: 'none', message, details }),
    warning: (message: string, fix: string): Finding => ({ name, status: 'warning', message, fix, details }),
    broken: (message: string, fix: string): Finding => ({ name, status: 'broken', message, fix, details }),
  };
}

/** The findings about one part of the path from Claude Code to Langfuse. */
export interface Part {
  readonly title: string;
  readonly findings: readonly Finding[];
}
