/** A place in a file: how many bytes come before it, and a hash of the last of them. If those have changed, the place means nothing. */
export interface Place {
  readonly bytes: number;
  readonly hash: string;
}

export const BEGINNING: Place = { bytes: 0, hash: '' };
