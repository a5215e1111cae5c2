import { attempt } from './attempt.js';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the parsed value; undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  return attempt(() => JSON.parse(text));
}

/** The value of a key that can be any text. All objects inherit values for `constructor` and a few others. */
export function ownValue<T>(values: { readonly [key: string]: T }, key: string): T | undefined {
  return Object.hasOwn(values, key) ? values[key] : undefined;
}

export function withoutUndefined<T>(values: { readonly [key: string]: T | undefined }): { [key: string]: T } {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, T] => entry[1] !== undefined));
}

export function mapValues<T, U>(values: { readonly [key: string]: T }, change: (value: T) => U): { [key: string]: U } {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));
}
