import { isRecord } from './json.js';

/** What is wrong with a value, and where in it. */
export class Mismatch {
  readonly message: string;
  readonly path: readonly string[];

  constructor(message: string, path: readonly string[] = []) {
    this.message = message;
    this.path = path;
  }
}

/**
 * Checks a value that comes from outside, and returns what of it is used. The few kinds of checks that are needed here take a
 * hook less than a millisecond to load; zod took ten, a seventh of all its time.
 */
export class Schema<T> {
  readonly check: (value: unknown) => T | Mismatch;

  constructor(check: (value: unknown) => T | Mismatch) {
    this.check = check;
  }

  /** Throws if the value is not as expected. */
  parse(value: unknown): T {
    const result = this.check(value);
    if (result instanceof Mismatch) throw new Error([...result.path, result.message].join(': '));
    return result;
  }

  /** Returns undefined if the value is not as expected. */
  find(value: unknown): T | undefined {
    const result = this.check(value);
    return result instanceof Mismatch ? undefined : result;
  }
}

type Infer<S> = S extends Schema<infer T> ? T : never;

export type { Infer as infer };

function accept<T>(isValid: (value: unknown) => value is T, expected: string): Schema<T> {
  const mismatch = new Mismatch(expected);
  return new Schema((value) => (isValid(value) ? value : mismatch));
}

const isString = (value: unknown) => typeof value === 'string';
const isBoolean = (value: unknown) => typeof value === 'boolean';

export const string = (expected = 'expected a string') => accept(isString, expected);
export const boolean = () => accept(isBoolean, 'expected true or false');
export const number = () =>
  accept((value): value is number => typeof value === 'number' && Number.isFinite(value), 'expected a number');
/** A string that is not empty. */
export function filledString() {
  const { check } = string();
  const mismatch = new Mismatch('expected a string that is not empty');
  return new Schema((value) => (value === '' ? mismatch : check(value)));
}
/** A whole number, 0 or above. */
export const count = () =>
  accept((value): value is number => Number.isSafeInteger(value) && Number(value) >= 0, 'expected a whole number');
export const matching = (pattern: RegExp, expected = 'expected another text') =>
  accept((value): value is string => typeof value === 'string' && pattern.test(value), expected);
export const oneOf = <const T extends string>(...values: readonly T[]) =>
  accept((value): value is T => values.some((each) => each === value), `expected ${values.join(' or ')}`);
export const custom = <T>(isValid: (value: unknown) => boolean) =>
  accept((value): value is T => isValid(value), 'expected another value');

/** May be missing. */
export const anything = new Schema<unknown>((value) => value);

/** A field that may be missing. A value of the wrong type counts as missing, so that one odd field does not cost the others. */
export const optional = <T>(schema: Schema<T>) => withDefault<T | undefined>(schema, undefined);

/** Replaces a value of the wrong type. */
export function withDefault<T>({ check }: Schema<T>, replacement: T): Schema<T> {
  return new Schema((value) => {
    if (value === undefined) return replacement;
    const result = check(value);
    return result instanceof Mismatch ? replacement : result;
  });
}

type Shape = { readonly [name: string]: Schema<unknown> };
type MayMiss<S extends Shape> = { [K in keyof S]: undefined extends Infer<S[K]> ? K : never }[keyof S];
type Fields<S extends Shape> = Flat<
  { [K in Exclude<keyof S, MayMiss<S>>]: Infer<S[K]> } & { [K in MayMiss<S>]?: Infer<S[K]> }
>;
type Flat<T> = { [K in keyof T]: T[K] };

/** An object with these fields; others are left out. */
export function object<S extends Shape>(shape: S, expected = 'expected an object'): Schema<Fields<S>> {
  const fields = Object.entries(shape);
  const mismatch = new Mismatch(expected);
  return new Schema((value) => {
    if (!isRecord(value)) return mismatch;
    const result: { [name: string]: unknown } = {};
    for (const [name, { check }] of fields) {
      const field = check(value[name]);
      if (field instanceof Mismatch) return new Mismatch(field.message, [name, ...field.path]);
      if (field !== undefined || name in value) result[name] = field;
    }
    return result as Fields<S>;
  });
}

/** An object that keeps its other fields. */
export function looseObject<S extends Shape>(shape: S): Schema<Fields<S> & { [name: string]: unknown }> {
  const { check } = object(shape);
  return new Schema((value) => {
    const known = check(value);
    return known instanceof Mismatch ? known : { ...(value as object), ...known };
  });
}

export function array<T>({ check }: Schema<T>): Schema<T[]> {
  const mismatch = new Mismatch('expected an array');
  return new Schema((value) => {
    if (!Array.isArray(value)) return mismatch;
    const items: T[] = [];
    for (const [index, each] of value.entries()) {
      const item = check(each);
      if (item instanceof Mismatch) return new Mismatch(item.message, [String(index), ...item.path]);
      items.push(item);
    }
    return items;
  });
}

/** An object with any names for values of one kind. */
export function record<T>({ check }: Schema<T>): Schema<{ [name: string]: T }> {
  const mismatch = new Mismatch('expected an object');
  return new Schema((value) => {
    if (!isRecord(value)) return mismatch;
    const entries: [string, T][] = [];
    for (const [name, each] of Object.entries(value)) {
      const item = check(each);
      if (item instanceof Mismatch) return new Mismatch(item.message, [name, ...item.path]);
      entries.push([name, item]);
    }
    return Object.fromEntries(entries);
  });
}

/** A value of the first kind that it is. */
export function union<const S extends readonly Schema<unknown>[]>(...schemas: S): Schema<Infer<S[number]>> {
  return new Schema((value) => {
    for (const { check } of schemas) {
      const result = check(value);
      if (!(result instanceof Mismatch)) return result as Infer<S[number]>;
    }
    return new Mismatch('expected another value');
  });
}

/** A whole number above 0, as a person types it. */
export const WHOLE_NUMBER = /^[1-9]\d{0,8}$/;
export const NO_WHOLE_NUMBER = 'expected a whole number above 0';
