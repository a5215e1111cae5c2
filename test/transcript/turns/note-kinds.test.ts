import { basename } from 'node:path';
import { expect, test } from 'vitest';
import { NOTE_KINDS } from '../../../src/transcript/turns/note-kinds.js';
import { readAllTurns } from '../../../src/transcript/turns/read-all-turns.js';
import { recordings, transcriptsOf } from '../../support/recording.js';

test('each kind of note comes from a line of a recording', () => {
  const turns = recordings()
    .flatMap(transcriptsOf)
    .flatMap((path) => [...readAllTurns(path, 'main', basename(path, '.jsonl'))]);
  const kinds = new Set(turns.flatMap(({ notes }) => notes.map(({ kind }) => kind)));
  expect([...kinds].toSorted()).toEqual(Object.keys(NOTE_KINDS).toSorted());
});
