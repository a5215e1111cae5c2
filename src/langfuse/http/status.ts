/** The server asks to wait. */
export const TOO_MANY = 429;

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Whether the same request may go through later. */
export function isPassing(status: number): boolean {
  return status === 408 || status === TOO_MANY || status >= 500;
}
