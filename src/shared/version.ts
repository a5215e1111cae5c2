import packageJson from '../../package.json' with { type: 'json' };

export const { version } = packageJson;

export function isOlder(one: string, other: string): boolean {
  return one.localeCompare(other, 'en', { numeric: true }) < 0;
}
