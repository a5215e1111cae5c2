import { expect, test } from 'vitest';
import { type AgentStatus, type AgentWhen, isDone, isOver, type When } from '../../src/export/over.js';
import type { Stop } from '../../src/state/facts.js';
import { hashAnswer } from '../../src/transcript/turns/answer.js';
import { assistant, groupTurns, toolResult, toolUse, user } from '../support/lines.js';

const prompt = user('question', { uuid: 'u1', parentUuid: 'u0', promptId: 'p1' });
const answer = assistant('m1', 'Done.', { uuid: 'a1', parentUuid: 'u1' });
const feedback = user('Stop hook feedback:\nagain', { uuid: 'f1', parentUuid: 'a1', promptId: 'p1', isMeta: true });
const call = assistant('m0', [toolUse('t1')], { uuid: 'a0', parentUuid: 'u1' });
const result = user([toolResult('t1')], { uuid: 'r1', parentUuid: 'a0', promptId: 'p1' });
const further = assistant('m2', 'I will see.', { uuid: 'a2', parentUuid: 'f1' });

const stop = (more: Partial<Stop> = {}): Stop => ({
  kind: 'stop',
  at: 1,
  run: {},
  bytes: 1_000,
  answer: hashAnswer('Done.'),
  isAfterFeedback: false,
  running: [],
  ...more,
});
const named = (more: Partial<Stop> = {}) => stop({ promptId: 'p1', ...more });

const NOTHING: When = {
  sentLine: 0,
  hasRunEnded: false,
  isIdle: false,
  isWanted: false,
  isFirst: () => true,
  isAnswered: () => false,
};

test.each<[string, 'over' | 'open', object[], Stop[], Partial<When>]>([
  ['goes on if nothing says that it is over', 'open', [prompt, answer], [], {}],
  ['is over if its run has ended', 'over', [prompt, call], [], { hasRunEnded: true }],
  ['is over if nothing has been written for long', 'over', [prompt, call], [], { isIdle: true }],
  ['is over if the user wants it as it is', 'over', [prompt, call], [], { isWanted: true }],
  ['is over with the answer of its Stop', 'over', [prompt, answer], [named()], {}],
  ['goes on although the Stop of another prompt has come', 'open', [prompt, answer], [named({ promptId: 'p2' })], {}],
  ['is over if that does not come', 'over', [prompt, call, result], [named()], {}],
  ['goes on if a Stop hook has objected', 'open', [prompt, answer, feedback], [named()], {}],
  ['goes on if the model has begun again', 'open', [prompt, answer, feedback, further], [named()], {}],
  [
    'is over with the answer after an objection',
    'over',
    [prompt, answer, feedback, assistant('m2', 'Done.', { uuid: 'a2', parentUuid: 'f1' })],
    [named(), named({ isAfterFeedback: true })],
    {},
  ],
  [
    'of a teammate goes on if the Stop is that of the turn whose id it has',
    'open',
    [prompt, call],
    [named()],
    { isFirst: () => false },
  ],
  ['of a teammate is over with its own answer', 'over', [prompt, answer], [named()], { isFirst: () => false }],
  ['is over with the answer of a Stop that names no prompt', 'over', [prompt, answer], [stop()], {}],
  ['goes on if that answer was sent before', 'open', [prompt, answer], [stop({ bytes: 0 })], { sentLine: 2 }],
  ['is over if no turn has that answer, and it is the last that began before', 'over', [prompt, call], [stop()], {}],
  ['goes on if another turn has it', 'open', [prompt, call], [stop()], { isAnswered: () => true }],
  ['goes on if it began after such a Stop', 'open', [prompt, call], [stop({ bytes: 0 })], {}],
  ['is over if its Stop says nothing of an answer', 'over', [prompt, call], [named({ answer: undefined })], {}],
  ['goes on if it began after that', 'open', [prompt, call], [stop({ answer: undefined, bytes: 0 })], {}],
])('a turn %s', (_, expected, lines, stops, when) => {
  const [turn] = groupTurns(lines).all;
  if (!turn) throw new Error('expected a turn');
  expect(isOver(turn, stops, { ...NOTHING, ...when }) ? 'over' : 'open').toBe(expected);
});

const NOW = 10_000_000;
const WORKING: AgentStatus = { changedAt: NOW, hasEnded: false, isListed: false };
const OPEN: AgentWhen = { sessionEndedAt: undefined, idleBefore: NOW - 600_000, isRecovered: false };
const idle = { changedAt: NOW - 600_001 };

test.each<[string, 'done' | 'working', Partial<AgentStatus>, Partial<AgentWhen>]>([
  ['works as long as nothing says that it is done', 'working', {}, {}],
  ['is done if a line has recorded its end', 'done', { hasEnded: true }, {}],
  ['is done if nothing has been written for long', 'done', idle, {}],
  ['works if the Stop lists it, although its call has returned', 'working', { hasEnded: true, isListed: true }, {}],
  ['works if the Stop lists it, however long it writes nothing', 'working', { ...idle, isListed: true }, {}],
  ['is done if it was listed by a Stop of long ago', 'done', { ...idle, isListed: true }, { isRecovered: true }],
  ['works if it was listed, and writes', 'working', { isListed: true }, { isRecovered: true }],
  ['is done if its session has ended', 'done', {}, { sessionEndedAt: NOW }],
  ['is done although it was listed when its session ended', 'done', { isListed: true }, { sessionEndedAt: NOW }],
  ['is done with the lines that come just after the end of its session', 'done', {}, { sessionEndedAt: NOW - 2_000 }],
  ['works in another session if it has written since its own ended', 'working', {}, { sessionEndedAt: NOW - 2_001 }],
])('an agent %s', (_, expected, status, when) => {
  expect(isDone({ ...WORKING, ...status }, { ...OPEN, ...when }) ? 'done' : 'working').toBe(expected);
});
