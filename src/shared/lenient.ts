import * as z from 'zod/mini';

/** A field that may be missing, and counts as missing where it is of the wrong type: one odd field must not cost the others. */
export const optional = <T extends z.core.$ZodType>(schema: T) => z.catch(z.optional(schema), undefined);
