import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

interface Certificate {
  /** Paths of PEM files. */
  readonly key: string;
  readonly cert: string;
}

/** Creates a self-signed certificate for this machine. Returns undefined if openssl is missing. */
export function createCertificate(folder: string): Certificate | undefined {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const validity = ['-nodes', '-days', '2'];
  const request = ['req', '-x509', '-newkey', 'rsa:2048', ...validity, '-keyout', key, '-out', cert, ...subject];
  try {
    execFileSync('openssl', request, { stdio: 'ignore' });
    return { key, cert };
  } catch {
    return undefined;
  }
}
