import * as z from 'zod/mini';

/** A field that may be missing. A value of the wrong type counts as missing, so that one odd field does not cost the others. */
export const optional = <T extends z.core.$ZodType>(schema: T) => z.catch(z.optional(schema), undefined);

/** How many bytes, lines or tokens there are. */
export const count = z.number().check(z.int(), z.nonnegative());

/** A whole number above 0, as a person types it. */
export const WHOLE_NUMBER = /^[1-9]\d{0,8}$/;
export const NO_WHOLE_NUMBER = 'expected a whole number above 0';
