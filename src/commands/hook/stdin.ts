import { parseJson } from '../../shared/json.js';

const USUAL_WAIT_MS = 5_000;

/** Reads stdin to its end, or to the end of one JSON object, or until the deadline (ms since 1970). */
export function readStdin(deadline = Date.now() + USUAL_WAIT_MS): Promise<string> {
  return new Promise((resolve, reject) => {
    const { stdin } = process;
    let text = '';
    const end = (settle: () => void) => {
      clearTimeout(timer);
      stdin.removeAllListeners();
      stdin.destroy();
      settle();
    };
    const timer = setTimeout(() => end(() => reject(new Error('stdin did not end'))), deadline - Date.now());
    stdin.setEncoding('utf8');
    stdin.on('data', (chunk: string) => {
      text += chunk;
      // Claude Code writes the whole payload at once, so there is no need to wait until it closes the pipe.
      if (/\}\s*$/.test(chunk) && parseJson(text) !== undefined) end(() => resolve(text));
    });
    stdin.on('end', () => end(() => resolve(text)));
    stdin.on('error', (error) => end(() => reject(error)));
  });
}
