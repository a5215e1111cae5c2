export const REDACTED = '[redacted]';
