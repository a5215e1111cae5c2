import { Socket } from 'node:net';

/** What hook.sh passes on: an event with the environment in which Claude Code started its hook. */
export interface PassedEvent {
  readonly env: NodeJS.ProcessEnv;
  readonly payload: string;
}

/** Reads events from a pipe. Each is the entries `event`, the variables, `payload`, and the payload, with a NUL between any two. */
export function readEvents(fd: number, onEvent: (event: PassedEvent) => void): void {
  const pipe = new Socket({ fd, readable: true, writable: false });
  let rest = '';
  let variables: string[] = [];
  let isPayload = false;
  pipe.setEncoding('utf8');
  pipe.on('data', (chunk: string) => {
    const entries = (rest + chunk).split('\0');
    rest = entries.pop() ?? '';
    for (const entry of entries) {
      if (isPayload) onEvent({ env: parseVariables(variables), payload: entry });
      else if (entry.includes('=')) variables.push(entry);
      // What came before it was cut off when its launcher was killed.
      else if (entry === 'event') variables = [];
      isPayload = !isPayload && entry === 'payload';
    }
  });
}

function parseVariables(entries: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(
    entries.map((entry) => {
      const end = entry.indexOf('=');
      return [entry.slice(0, end), entry.slice(end + 1)];
    }),
  );
}
