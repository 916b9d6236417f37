import { describe, expect, it } from 'vitest';
import {
  failedText,
  failedWithoutText,
  fileNameOf,
  inconclusiveText,
  isAgentFile,
  parseFailed,
  parseInconclusive,
  parseTrial,
  startDecision,
  type Trial,
  trialText,
} from './update-record.ts';

const sha256 = `${'ab'.repeat(8)}${'0'.repeat(48)}`;
const file = `agent-1.1.0-${'ab'.repeat(8)}.mjs`;
const trial: Trial = { version: '1.1.0', sha256, file, previous: 'agent-1.0.0-x.mjs', starts: 1 };

it('names a file by its version and the beginning of its digest', () => {
  expect(fileNameOf(trial)).toBe(file);
  const names = [file, 'agent-.mjs', 'xagent-1.mjs', 'agent-1.mjs.tmp', 'agent-1.js', '.new-agent-1.mjs'];
  expect(names.map(isAgentFile)).toEqual([true, false, false, false, false, false]);
});

describe('the record of a trial', () => {
  it('is read as it was written', () => {
    expect(parseTrial(trialText(trial))).toEqual(trial);
    expect(trialText(trial)).toMatch(/^\{.*\}\n$/);
    const first = { ...trial, previous: '', starts: 0 };
    expect(parseTrial(JSON.stringify({ ...first, more: 1 }))).toEqual(first);
  });

  it.each([
    undefined,
    '',
    '{"version":"1.1.0"',
    'null',
    '[]',
    ...[
      { version: 1 },
      { sha256: undefined },
      { file: 5 },
      { file: 'other.mjs' },
      { file: 'agent-1/../x.mjs' },
      { previous: null },
      { previous: '../agent-1.mjs' },
      { starts: '1' },
    ].map((more) => JSON.stringify({ ...trial, ...more })),
  ])('is none: %s', (text) => {
    expect(parseTrial(text)).toBeUndefined();
  });
});

describe('the record of failed artifacts', () => {
  const one = { version: '1', sha256: 'a', message: 'm' };

  it('is read as it was written, without malformed items', () => {
    const doubtful = { version: '2', sha256: 'b', message: 'n', isDoubtful: true };
    expect(parseFailed(failedText([one], doubtful))).toEqual([one, doubtful]);
    const items = [
      { ...one, isDoubtful: false },
      null,
      'x',
      { ...one, version: 1 },
      { ...one, sha256: 2 },
      { version: '1', sha256: 'a' },
    ];
    expect(parseFailed(JSON.stringify({ items }))).toEqual([one]);
    expect([parseFailed(undefined), parseFailed('{"items":{}}'), parseFailed('x')]).toEqual([[], [], []]);
  });

  it('has each artifact once, the newest last, at most 20, and short messages', () => {
    const known = Array.from({ length: 20 }, (_, index) => ({ ...one, sha256: `${index}` }));
    const again = parseFailed(failedText(known, { ...one, sha256: '3', message: 'x'.repeat(501) }));
    expect(again.map((each) => each.sha256)).toEqual([
      ...known.map((each) => each.sha256).filter((each) => each !== '3'),
      '3',
    ]);
    expect(again.at(-1)?.message).toBe('x'.repeat(500));
    const more = parseFailed(failedText(known, { ...one, sha256: 'new' }));
    expect([more.length, more[0]?.sha256, more.at(-1)?.sha256]).toEqual([20, '1', 'new']);
    expect(parseFailed(failedWithoutText(known, '0')).map((each) => each.sha256)).toEqual(
      known.slice(1).map((each) => each.sha256),
    );
  });
});

describe('the record of trials that proved nothing', () => {
  it('has each artifact once, the newest last, at most 20', () => {
    const known = Array.from({ length: 20 }, (_, index) => ({ sha256: `${index}`, trials: 1 }));
    expect(parseInconclusive(inconclusiveText(known, { sha256: '19', trials: 2 })).at(-1)).toEqual({
      sha256: '19',
      trials: 2,
    });
    const more = parseInconclusive(inconclusiveText(known, { sha256: 'new', trials: 1 }));
    expect([more.length, more[0]?.sha256]).toEqual([20, '1']);
    const items = [{ sha256: 'a', trials: 1, x: 1 }, null, { sha256: 1, trials: 1 }, { sha256: 'b', trials: '1' }];
    expect(parseInconclusive(JSON.stringify({ items }))).toEqual([{ sha256: 'a', trials: 1 }]);
    expect([parseInconclusive(undefined), parseInconclusive('{"items":1}')]).toEqual([[], []]);
  });
});

describe('a start', () => {
  const records = { current: file, trial, failed: [], names: [file] };

  it.each([
    ['the linked file', { trial: undefined }, { kind: 'start', file }],
    ['the installed agent without a link', { trial: undefined, current: undefined }, { kind: 'start', file: '' }],
    ['the installed agent for a link to nothing', { trial: undefined, names: [] }, { kind: 'start', file: '' }],
    [
      'the linked file, for a trial of another',
      { current: 'x.mjs', names: [file, 'x.mjs'] },
      { kind: 'discard', file: 'x.mjs' },
    ],
    ['the installed agent, for a trial that was not begun', { current: undefined }, { kind: 'discard', file: '' }],
    ['the version on trial, once more', {}, { kind: 'try', trial: { ...trial, starts: 2 } }],
    [
      'the version on trial for the last time',
      { trial: { ...trial, starts: 2 } },
      { kind: 'try', trial: { ...trial, starts: 3 } },
    ],
    [
      'the version before, after three starts',
      { trial: { ...trial, starts: 3 } },
      {
        kind: 'rollBack',
        trial: { ...trial, starts: 3 },
        message: '3 starts without 2 accepted heartbeats',
        isDoubtful: true,
      },
    ],
    [
      'the version before, for a missing file',
      { names: [] },
      { kind: 'rollBack', trial, message: `${file} is missing` },
    ],
    [
      'the version before, for one that failed',
      { failed: [{ version: '1', sha256, message: 'broken' }] },
      { kind: 'rollBack', trial, message: 'broken' },
    ],
    [
      'the version on trial, when another one failed',
      { failed: [{ version: '1', sha256: 'x', message: 'b' }] },
      { kind: 'try' },
    ],
  ])('runs %s', (_what, more, decision) => {
    expect(startDecision({ ...records, ...more })).toMatchObject(decision);
  });
});
