import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { githubMetadata } from '../../src/config/github-actions.js';
import { OBSERVATION_KEYS, RESERVED_KEYS, TRACE_KEYS } from '../../src/observations/metadata-keys.js';
import { recordings } from '../support/recording.js';

interface Described {
  readonly metadata: object;
  readonly observations: readonly { readonly metadata: object }[];
}

const handmade = new URL('../../fixtures/handmade/', import.meta.url).pathname;
const folders = [handmade, ...recordings().map(({ folder }) => folder)];
const traces = folders.flatMap((folder): Described[] =>
  JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')),
);
const keysOf = (all: readonly { readonly metadata: object }[]) => [
  ...new Set(all.flatMap(({ metadata }) => Object.keys(metadata))),
];

describe('a key of metadata', () => {
  test('is not both in an observation and in its trace, whose value Langfuse would show', () => {
    const traceKeys: readonly string[] = TRACE_KEYS;
    expect(OBSERVATION_KEYS.filter((key) => traceKeys.includes(key))).toEqual([]);
  });

  test('of any recorded observation is known, so that the user cannot overwrite it', () => {
    const keys = keysOf(traces.flatMap(({ observations }) => observations));
    expect(keys.length).toBeGreaterThan(25);
    expect(keys.filter((key) => !OBSERVATION_KEYS.some((each) => each === key))).toEqual([]);
  });

  test('of any recorded trace is known, so that the user cannot overwrite it', () => {
    const github = githubMetadata({ GITHUB_ACTIONS: 'true', GITHUB_SHA: 'x', GITHUB_RUN_ID: '1' });
    const keys = [...keysOf(traces), ...Object.keys(github ?? {})];
    expect(keys.length).toBeGreaterThan(10);
    expect(keys.filter((key) => !TRACE_KEYS.some((each) => each === key))).toEqual([]);
  });

  test('of the server itself is reserved, too', () => {
    expect(['resourceAttributes', 'scope'].every((key) => RESERVED_KEYS.has(key))).toBe(true);
  });
});
