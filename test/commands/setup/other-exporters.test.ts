import { expect, test } from 'vitest';
import { otherExporters } from '../../../src/commands/setup/other-exporters.js';

const stop = (command: string) => ({ hooks: { Stop: [{ hooks: [{ type: 'command', command }] }] } });

test.each([
  ['pnpm dlx github:elct9620/cc-langfuse', 'the first cc-langfuse'],
  ['pnpm dlx github:elct9620/cc-langfuse#0.3.1 hook', 'the first cc-langfuse'],
  ['npx --yes git+https://github.com/elct9620/cc-langfuse.git hook', 'the first cc-langfuse'],
  ['python3 ~/.claude/hooks/langfuse_hook.py', "Langfuse's hook for Claude Code"],
  ['/opt/tools/trace-to-langfuse.sh', 'a hook that names Langfuse'],
])('%s is another exporter', (command, name) => {
  expect(otherExporters(stop(command))).toEqual([
    { name, place: 'hooks.Stop', remedy: 'take its command out of hooks.Stop' },
  ]);
});

test("Langfuse's plugin is another, from whichever marketplace, where it is on", () => {
  const enabledPlugins = {
    'langfuse-observability@claude-plugins-official': true,
    'langfuse@langfuse-observability': true,
    'langfuse-observability@elsewhere': false,
    'langfuse@claude-plugins-official': true,
  };
  expect(otherExporters({ enabledPlugins }).map(({ remedy }) => remedy)).toEqual([
    'claude plugin disable langfuse-observability@claude-plugins-official',
    'claude plugin disable langfuse@langfuse-observability',
  ]);
});

test("Claude Code's own telemetry is another where it goes to a Langfuse", () => {
  const env = {
    CLAUDE_CODE_ENABLE_TELEMETRY: '1',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:3000/api/public/otel',
  };
  expect(otherExporters({ env })).toMatchObject([{ place: 'env.OTEL_EXPORTER_OTLP_ENDPOINT' }]);
  expect(otherExporters({ env: { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' } })).toEqual([]);
  expect(otherExporters({ env: { ...env, CLAUDE_CODE_ENABLE_TELEMETRY: '0' } })).toEqual([]);
});

test.each([
  stop('exec cc-langfuse hook'),
  stop('tail ~/.claude/state/cc-langfuse_hook.log'),
  stop('prettier --check .'),
  { env: { LANGFUSE_PUBLIC_KEY: 'pk' } },
  { hooks: [], enabledPlugins: [], env: [] },
])('%j has none', (settings) => expect(otherExporters(settings)).toEqual([]));
