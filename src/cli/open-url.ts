import { spawn } from 'node:child_process';
import { pathToFileURL } from 'node:url';

/** The platform's own program that opens a URL, which gets it as an argument, without a shell. */
const OPENERS: { readonly [platform: string]: readonly [string, ...string[]] } = {
  darwin: ['open'],
  linux: ['xdg-open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** Opens a web page if a person is at a desktop. */
export function openUrl(url: string, env: NodeJS.ProcessEnv): void {
  if (/^https?:\/\//.test(url)) startOpener(url, env);
}

/** Opens a file of our own in the same way. */
export function openFile(path: string, env: NodeJS.ProcessEnv): void {
  startOpener(pathToFileURL(path).href, env);
}

function startOpener(url: string, { SSH_CONNECTION, DISPLAY, WAYLAND_DISPLAY }: NodeJS.ProcessEnv): void {
  const opener = OPENERS[process.platform];
  const hasDesktop = !SSH_CONNECTION && (process.platform !== 'linux' || Boolean(DISPLAY || WAYLAND_DISPLAY));
  if (!opener || !hasDesktop || !process.stdout.isTTY) return;
  const [command, ...args] = opener;
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore' });
  // Without an opener the URL has been printed.
  child.on('error', () => {});
  child.unref();
}
