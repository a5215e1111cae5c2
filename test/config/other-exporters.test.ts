import { expect, test } from 'vitest';
import { findOtherExporters } from '../../src/config/other-exporters.js';

const stop = (command: string) => ({ hooks: { Stop: [{ hooks: [{ type: 'command', command }] }] } });

test.each([
  ['pnpm dlx github:elct9620/cc-langfuse', 'the original cc-langfuse'],
  ['pnpm dlx github:elct9620/cc-langfuse#0.3.1 hook', 'the original cc-langfuse'],
  ['npx --yes git+https://github.com/elct9620/cc-langfuse.git hook', 'the original cc-langfuse'],
  ['python3 ~/.claude/hooks/langfuse_hook.py', "Langfuse's hook for Claude Code"],
  ['/opt/tools/trace-to-langfuse.sh', 'a hook that mentions Langfuse'],
])('%s is another exporter', (command, name) => {
  expect(findOtherExporters(stop(command))).toEqual([
    { name, place: 'hooks.Stop', fix: 'remove its command from hooks.Stop' },
  ]);
});

test("Langfuse's plugin is another exporter, from any marketplace, if it is enabled", () => {
  const enabledPlugins = {
    'langfuse-observability@claude-plugins-official': true,
    'langfuse@langfuse-observability': true,
    'langfuse-observability@elsewhere': false,
    'langfuse@claude-plugins-official': true,
  };
  expect(findOtherExporters({ enabledPlugins }).map(({ fix }) => fix)).toEqual([
    'claude plugin disable langfuse-observability@claude-plugins-official',
    'claude plugin disable langfuse@langfuse-observability',
  ]);
});

test("Claude Code's own telemetry is another exporter if it is sent to Langfuse", () => {
  const env = {
    CLAUDE_CODE_ENABLE_TELEMETRY: '1',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:3000/api/public/otel',
  };
  expect(findOtherExporters({ env })).toMatchObject([{ place: 'env.OTEL_EXPORTER_OTLP_ENDPOINT' }]);
  expect(findOtherExporters({ env: { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' } })).toEqual([]);
  expect(findOtherExporters({ env: { ...env, CLAUDE_CODE_ENABLE_TELEMETRY: '0' } })).toEqual([]);
});

test.each([
  stop('exec cc-langfuse hook'),
  stop('tail ~/.claude/state/cc-langfuse_hook.log'),
  stop('prettier --check .'),
  { env: { LANGFUSE_PUBLIC_KEY: 'pk' } },
  { hooks: [], enabledPlugins: [], env: [] },
])('%j has no other exporter', (settings) => expect(findOtherExporters(settings)).toEqual([]));
