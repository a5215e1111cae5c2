import { describe, expect, test } from 'vitest';
import { nameModel } from '../../../src/observations/build/model-name.js';

describe('a model is named as Anthropic names it, so that Langfuse finds its price', () => {
  test.each([
    // The long context.
    ['claude-opus-5-5[1m]', 'claude-opus-5-5'],
    ['claude-opus-5@20260701[1m]', 'claude-opus-5'],
    // Bedrock.
    ['anthropic.claude-3-5-sonnet-20241022-v2:0', 'claude-3-5-sonnet-20241022'],
    ['us.anthropic.claude-opus-4-5-20251101-v1:0', 'claude-opus-4-5-20251101'],
    ['us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0', 'claude-sonnet-4-5-20250929'],
    ['global.anthropic.claude-opus-5-5', 'claude-opus-5-5'],
    ['eu.anthropic.claude-opus-4-6-v1', 'claude-opus-4-6'],
    ['arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-opus-5-v1:0[1m]', 'claude-opus-5'],
    [
      'arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/anthropic.claude-haiku-4-5-20251001-v1:0',
      'claude-haiku-4-5-20251001',
    ],
    // Vertex: from 4.6 on Anthropic's own names have no date.
    ['claude-haiku-4-5@20251001', 'claude-haiku-4-5-20251001'],
    ['claude-opus-4@20250514', 'claude-opus-4-20250514'],
    ['claude-3-5-sonnet-v2@20241022', 'claude-3-5-sonnet-20241022'],
    ['claude-opus-4-6@default', 'claude-opus-4-6'],
    ['claude-opus-4-10@20270101', 'claude-opus-4-10'],
    ['claude-opus-5-5@20261001', 'claude-opus-5-5'],
  ])('%s is %s', (name, model) => {
    expect(nameModel(name)).toBe(model);
  });

  test.each([
    'claude-opus-5',
    'claude-haiku-4-5-20251001',
    'anthropic/claude-opus-5',
    'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123def',
    'my-gateway@2026',
    'amazon.nova-pro-v1:0',
    'gpt-9@20260101',
  ])('%s stays as it is', (name) => {
    expect(nameModel(name)).toBe(name);
  });
});
