/** How characters are written inside strings, JSON in JSON, URLs and HTML. Each pattern that meets a quote or a word's start uses these. */

/** `%22`, and `%2522` where a URL is inside a URL. */
const percent = (codes: string) => `%(?:25){0,3}(?:${codes})`;
/** `\u0022` and `\x22`, also in JSON in JSON. */
const code = (codes: string) => `\\\\{1,7}(?:u00|x)(?:${codes})`;
const entity = (names: string) => `&(?:amp;)?(?:${names});`;

/** A quote that is no plain one, and thus ends with the same characters as it begins. */
export const ENCODED_QUOTE = `(?:${code('2[27]|60')}|${percent('2[27]|60')}|${entity('quot|apos|#0{0,2}3[49]|#x2[27]')})`;
export const QUOTE = `(?:\\\\{0,7}["'\`]|${ENCODED_QUOTE})`;
export const SPACE = `(?:\\s|\\\\{1,7}[nrt]|${percent('20|0[AaDd9]')}|&nbsp;)`;
export const LESS_THAN = `(?:<|${code('3[Cc]')}|${percent('3[Cc]')}|${entity('lt')})`;
export const GREATER_THAN = `(?:>|${code('3[Ee]')}|${percent('3[Ee]')}|${entity('gt')})`;
export const SLASH = `(?:\\\\{0,3}/|${percent('2[Ff]')})`;
export const ENCODED_SEPARATOR = `(?:${code('3[AaDd]')}|${percent('3[AaDd]')})(?:${SPACE}|\\+)?`;
/** Whatever ends a value in a URL that is encoded: a quote, a space, a line, a bracket, `&`, `,` or `;`. */
export const ENCODED_END = `(?:${ENCODED_QUOTE}|${SPACE}|${GREATER_THAN}|${LESS_THAN}|${percent('26|2[Cc]|3[Bb]|5[CcDd]|7[Dd]|40|23')})`;

/** A line break or a tab in a string, and what sets a colour. */
export const SHORT_ESCAPE = '(?:\\\\[nrtbf]|\\[[\\d;]{0,9}m)';
/** The last characters of an escape are letters and digits, but do not belong to the word after it. */
export const ESCAPE = `(?:${SHORT_ESCAPE}|\\\\(?:u00|x)[\\dA-Fa-f]{2}|${percent('[\\dA-Fa-f]{2}')})`;
