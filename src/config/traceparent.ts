import * as z from 'zod/mini';

/** As in W3C Trace Context: ids of zeros alone, and version ff, are none. */
export const traceparent = z.pipe(
  z
    .string()
    .check(
      z.regex(
        /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/,
        'expected 00-, a trace id of 32 hexadecimal digits, -, a span id of 16, -, and flags of 2',
      ),
    ),
  z.transform((value) => {
    const [, trace = '', span = ''] = value.split('-');
    return { trace, span };
  }),
);
