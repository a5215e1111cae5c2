import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { version } from '../../src/shared/version.js';
import type { Ended, Environment } from './program.js';

const ROOT = new URL('../../', import.meta.url).pathname;

/** Packs the program as built, as `npm publish` would, and returns the path of the tarball. */
export function pack(folder: string, as = version): string {
  const source = mkdtempSync(join(folder, 'package-'));
  const { files, ...rest } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  for (const name of ['LICENSE', 'README.md', ...files])
    cpSync(join(ROOT, name), join(source, name), { recursive: true });
  writeFileSync(join(source, 'package.json'), JSON.stringify({ ...rest, files, version: as }));
  // The version is a part of the program.
  for (const name of readdirSync(join(source, 'dist'))) {
    const path = join(source, 'dist', name);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(`"${version}"`, `"${as}"`));
  }
  // The program is already built.
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const [{ filename }] = JSON.parse(
    execFileSync('npm', args, { cwd: source, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  );
  return join(folder, filename);
}

/** An npm registry on loopback that has published versions of this package, and nothing else. */
export class Registry {
  readonly #server: Server;
  /** The paths of the tarballs, the newest last. */
  readonly tarballs: { [version: string]: string } = {};

  private constructor() {
    this.#server = createServer(({ url = '' }, response) => {
      const path = Object.values(this.tarballs).find((each) => each.endsWith(url));
      if (path !== undefined) return response.end(readFileSync(path));
      if (url !== '/cc-langfuse' || Object.keys(this.tarballs).length === 0) return response.writeHead(404).end('{}');
      return response.setHeader('content-type', 'application/json').end(JSON.stringify(this.#describe()));
    });
  }

  static async start(): Promise<Registry> {
    const registry = new Registry();
    await new Promise<void>((resolve) => registry.#server.listen(0, '127.0.0.1', resolve));
    return registry;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  #describe() {
    const { bin, engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const entries = Object.entries(this.tarballs).map(([each, path]) => {
      const integrity = `sha512-${createHash('sha512').update(readFileSync(path)).digest('base64')}`;
      const dist = { tarball: this.url + path.slice(path.lastIndexOf('/') + 1), integrity };
      return [each, { name: 'cc-langfuse', version: each, bin, engines, dist }] as const;
    });
    return { name: 'cc-langfuse', 'dist-tags': { latest: entries.at(-1)?.[0] }, versions: Object.fromEntries(entries) };
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => void this.#server.close(() => resolve()));
  }
}

/** Runs a command as a person would. */
export function execute(
  command: string,
  args: readonly string[],
  options: { env: Environment; cwd: string; stdin?: string },
): Promise<Omit<Ended, 'ms'>> {
  const { stdin = '', ...others } = options;
  return new Promise((resolve) => {
    const child = execFile(command, args, others, (error, stdout, stderr) =>
      resolve({ exitCode: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(stdin);
  });
}
