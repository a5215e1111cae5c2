/** A whole number above 0, as a person writes it. */
export const WHOLE_NUMBER = /^[1-9]\d{0,8}$/;
export const NO_WHOLE_NUMBER = 'expected a whole number above 0';
