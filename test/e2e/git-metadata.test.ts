import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendLines, appendTurn as appendTurnTo, assistant, at, toolResult, toolUse, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const A = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
const B = 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb';
const transcript = (session: string) => workplace.transcriptOf(session);
const repository = () => join(workplace.home, 'repo');

const appendTurn = (session: string, n: number, cwd = repository()) =>
  appendTurnTo(transcript(session), n, { cwd, gitBranch: 'main' });

function makeRepository(config: string): void {
  mkdirSync(join(repository(), '.git'), { recursive: true });
  writeFileSync(join(repository(), '.git', 'config'), config);
}

const hook = (session: string, more: object = {}) =>
  workplace.hook({ session_id: session, transcript_path: transcript(session), hook_event_name: 'Stop', ...more });
const tracesOf = (session: string) =>
  workplace.server.observations.filter(({ trace }) => trace.sessionId === session).map(({ trace }) => trace);

const REMOTE = '[remote "origin"]\n\turl = https://me:ghp_secret@github.com/owner/name.git\n';

describe('the metadata of a turn', () => {
  test('has its git branch, and its repository without the password in the address', async () => {
    makeRepository(REMOTE);
    appendTurn(A, 1);
    appendTurn(A, 2, join(workplace.home, 'gone'));
    await hook(A);
    expect(workplace.server.roots.map(({ metadata }) => [metadata.git_branch, metadata.git_repository])).toEqual([
      ['main', 'github.com/owner/name'],
      ['main', undefined],
    ]);
    const tagged = ['claude-code', 'repo:owner/name', 'branch:main'];
    const gone = ['claude-code', 'branch:main'];
    expect(tracesOf(A).map(({ tags }) => tags)).toEqual([tagged, tagged, gone, gone]);
    expect(JSON.stringify([workplace.state, workplace.server.observations])).not.toContain('secret');
  });

  test('has the repository of the time when it is exported, or none if the folder is gone', async () => {
    makeRepository(REMOTE);
    appendTurn(A, 1);
    await hook(A);
    makeRepository('[remote "origin"]\n\turl = git@example.com:moved/name\n');
    appendTurn(A, 2);
    await hook(A);
    rmSync(repository(), { recursive: true });
    appendTurn(A, 3);
    await hook(A);
    const roots = workplace.server.observations.filter(({ parentId }) => parentId === undefined);
    expect(roots.map(({ trace }) => trace.metadata.git_repository)).toEqual([
      'github.com/owner/name',
      'example.com/moved/name',
      undefined,
    ]);
    expect(workplace.log).toEqual([]);
  });
});

describe('the user of a turn', () => {
  test("is git's user if CC_LANGFUSE_USER_ID is git, also for an agent that ends later", async () => {
    makeRepository('[user]\n\temail = me@work.example\n');
    writeFileSync(join(workplace.home, '.gitconfig'), '[user]\n\temail = me@home.example\n');
    workplace.env = { ...workplace.env, CC_LANGFUSE_USER_ID: 'git' };
    appendLines(
      transcript(A),
      user('go', { uuid: 'u1', timestamp: at(0), cwd: repository() }),
      assistant('m1', [toolUse('call', 'Agent', { subagent_type: 'Explore' })], { timestamp: at(1) }),
      user([toolResult('call', 'Async agent launched successfully.')], {
        timestamp: at(2),
        toolUseResult: { isAsync: true, status: 'async_launched', agentId: 'a1' },
      }),
      assistant('m2', 'wait', { timestamp: at(3) }),
    );
    await hook(A, { background_tasks: [{ id: 'a1', status: 'running' }] });
    const agent = join(workplace.projects, '-work', A, 'subagents', 'agent-a1.jsonl');
    appendLines(agent, user('look', { isSidechain: true, agentId: 'a1', uuid: 'p', timestamp: at(4) }));
    appendLines(agent, assistant('m3', 'seen', { isSidechain: true, agentId: 'a1', timestamp: at(5) }));
    appendTurn(A, 2, workplace.home);
    await hook(A, { hook_event_name: 'SessionEnd' });
    const users = (turn: string) => {
      const traceId = workplace.server.roots.find(({ name }) => name === turn)?.traceId;
      return workplace.server.observations.flatMap((each) => (each.traceId === traceId ? [each.trace.userId] : []));
    };
    expect(users('Turn 1')).toEqual(Array(6).fill('me@work.example'));
    expect(new Set(users('Turn 2'))).toEqual(new Set(['me@home.example']));
  });

  test('is that of its own run even if another run sends it', async () => {
    workplace.env = { ...workplace.env, LANGFUSE_USER_ID: 'git', GIT_AUTHOR_EMAIL: 'a@x' };
    appendTurn(A, 1);
    workplace.server.misbehave = () => ({ status: 401 });
    await hook(A);
    workplace.server.misbehave = () => undefined;
    workplace.env = { ...workplace.env, GIT_AUTHOR_EMAIL: 'b@x' };
    appendTurn(B, 1);
    await hook(B);
    expect([tracesOf(B)[0]?.userId, tracesOf(A)[0]?.userId]).toEqual(['b@x', 'a@x']);
  });

  test('is not set if git has no user', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_USER_ID: 'git' };
    appendTurn(A, 1);
    await hook(A);
    expect(tracesOf(A).map(({ userId }) => userId)).toEqual([undefined, undefined]);
    expect(workplace.log).toEqual([]);
  });
});
