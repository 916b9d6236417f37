import { describe, expect, it } from 'vitest';
import {
  duration,
  enforcements,
  evictionThresholds,
  flag,
  flagMap,
  flagText,
  labelsText,
  minimumReclaims,
  priorityGraces,
  type Reader,
  relaySettings,
  reservation,
  signalDurations,
  taints,
  taintsText,
  text,
  textMap,
  wholeNumber,
  wholeNumberText,
} from './config-readers.ts';

/** The value, or `path: expectation` of each fault. */
function outcome<Value>(reader: Reader<Value>, value: unknown): Value | readonly string[] {
  const found = reader(value);
  return found.kind === 'read'
    ? found.value
    : found.faults.map(({ path, expected }) => `${path.join('.')}: ${expected}`);
}
const signals = ['memory.available', 'nodefs.available'];
const DURATION = ': a duration such as 10s, 1m30s or 500ms, not negative';
const THRESHOLD = 'a quantity above 0 such as 100Mi, or a percentage from 0% to 100%';
const RECLAIM = 'a quantity such as 500Mi, or a percentage above 0% and up to 100%';
const SIGNALS = 'one of the signals memory.available, nodefs.available';

describe('a single value', () => {
  const from3to5 = wholeNumber(3, 5);
  it.each<[Reader<unknown>, unknown, unknown]>([
    [text, 'x', 'x'],
    [text, '', ''],
    [text, 5, [': text']],
    [flag, false, false],
    [flag, 'true', [': true or false']],
    [flagText, 'true', true],
    [flagText, '0', false],
    [flagText, 'yes', [': true or false']],
    [from3to5, 3, 3],
    [from3to5, 5, 5],
    [from3to5, 2, [': a whole number from 3 to 5']],
    [from3to5, 6, [': a whole number from 3 to 5']],
    [from3to5, 3.5, [': a whole number from 3 to 5']],
    [from3to5, '4', [': a whole number from 3 to 5']],
    [wholeNumber(), 2 ** 31 - 1, 2 ** 31 - 1],
    [wholeNumber(), -(2 ** 31), -(2 ** 31)],
    [wholeNumber(), 2 ** 31, [': a whole number from -2147483648 to 2147483647']],
    [wholeNumber(), -(2 ** 31) - 1, [': a whole number from -2147483648 to 2147483647']],
    [wholeNumberText(-5, 5), '-5', -5],
    [wholeNumberText(-5, 5), '12', [': a whole number from -5 to 5']],
    [wholeNumberText(0, 5), '', [': a whole number from 0 to 5']],
    [wholeNumberText(0, 5), '1 ', [': a whole number from 0 to 5']],
    [wholeNumberText(0, 5), 'x1', [': a whole number from 0 to 5']],
    [wholeNumberText(0, 5), '0x1', [': a whole number from 0 to 5']],
    [duration, '1m30s', 90_000],
    [duration, '0s', 0],
    [duration, '-1s', [DURATION]],
    [duration, 10, [DURATION]],
    [duration, 'x', [DURATION]],
  ])('%#: %s', (reader, value, expected) => {
    expect(outcome(reader, value)).toEqual(expected);
  });
});

describe('maps', () => {
  it.each<[Reader<unknown>, unknown, unknown]>([
    [textMap, { a: 'x' }, { a: 'x' }],
    [textMap, { a: 1, b: 'x', c: 2 }, ['a: text', 'c: text']],
    [textMap, [], [': a map']],
    [flagMap, { a: true }, { a: true }],
    [flagMap, { a: 'true' }, ['a: true or false']],
    [
      reservation,
      { cpu: '500m', memory: 1_024, 'ephemeral-storage': '0', pid: '100' },
      { cpu: '500m', memory: '1024', 'ephemeral-storage': '0', pid: '100' },
    ],
    [reservation, { cpu: '-1' }, ['cpu: a quantity such as 500m or 100Mi, not negative']],
    [reservation, { cpu: true }, ['cpu: a quantity such as 500m or 100Mi, not negative']],
    [reservation, { gpu: '1' }, ['gpu: one of the resources cpu, memory, ephemeral-storage, pid']],
    [
      signalDurations(signals),
      { 'memory.available': '1m', 'containerfs.available': 'x' },
      { 'memory.available': 60_000 },
    ],
    [signalDurations(signals), { other: '1m' }, [`other: ${SIGNALS}`]],
    [signalDurations(signals), { 'memory.available': 1 }, [`memory.available${DURATION}`]],
  ])('%#', (reader, value, expected) => {
    expect(outcome(reader, value)).toEqual(expected);
  });
});

describe('thresholds of eviction', () => {
  const read = (value: unknown) => outcome(evictionThresholds(signals), { 'memory.available': value });
  const refused = [`memory.available: ${THRESHOLD}`];

  it.each([
    ['100Mi', { kind: 'quantity', value: 100 * 2 ** 20 }],
    [5, { kind: 'quantity', value: 5 }],
    ['500m', { kind: 'quantity', value: 0.5 }],
    ['10%', { kind: 'percent', percent: 10 }],
    ['99.5%', { kind: 'percent', percent: 99.5 }],
  ])('%s is one', (value, threshold) => {
    expect(read(value)).toEqual({ 'memory.available': threshold });
  });

  it.each(['0%', '100%'])('%s is none', (value) => {
    expect(read(value)).toEqual({});
  });

  it.each(['0', '-1', 'x', '101%', '-5%', '1e1%', '%', '5.%', '0100%', 'x5%', true, null])('%s is refused', (value) => {
    expect(read(value)).toEqual(refused);
  });

  it('of signals that are not measured have no effect', () => {
    const others = ['allocatableMemory.available', 'containerfs.available', 'containerfs.inodesFree'];
    for (const each of others) {
      expect(outcome(evictionThresholds(signals), { [each]: '5' })).toEqual({});
      expect(outcome(minimumReclaims(signals), { [each]: '5' })).toEqual({});
    }
    expect(outcome(evictionThresholds(signals), { other: '5' })).toEqual([`other: ${SIGNALS}`]);
  });

  it('have reclaims: 0 is none', () => {
    const reclaim = (value: unknown) => outcome(minimumReclaims(signals), { 'memory.available': value });
    expect([reclaim('0'), reclaim(0), reclaim('5'), reclaim('100%')]).toEqual([
      {},
      {},
      { 'memory.available': { kind: 'quantity', value: 5 } },
      { 'memory.available': { kind: 'percent', percent: 100 } },
    ]);
    for (const value of ['0%', '-1', 'x', true]) expect(reclaim(value)).toEqual([`memory.available: ${RECLAIM}`]);
    expect(outcome(minimumReclaims(signals), { other: '5' })).toEqual([`other: ${SIGNALS}`]);
  });
});

describe('lists', () => {
  const grace = { priority: -5, shutdownGracePeriodSeconds: 0 };
  const GRACE = '{priority, shutdownGracePeriodSeconds}, both whole numbers, the seconds not negative';
  const taint = { key: 'a', value: 'b', effect: 'NoSchedule', timeAdded: 'x' };

  it.each<[Reader<unknown>, unknown, unknown]>([
    [priorityGraces, [grace], [grace]],
    [priorityGraces, {}, [': a list']],
    [priorityGraces, [grace, 5, { ...grace, more: 1 }], [`1: ${GRACE}`, '2.more: no such field']],
    [priorityGraces, [{ priority: 1 }], [`0: ${GRACE}`]],
    [priorityGraces, [{ ...grace, shutdownGracePeriodSeconds: -1 }], [`0: ${GRACE}`]],
    [priorityGraces, [{ ...grace, priority: 'x' }], [`0: ${GRACE}`]],
    [taints, [taint], [taint]],
    [taints, [{ ...taint, other: 'x' }], ['0.other: no such field']],
    [taints, [{ ...taint, value: 5 }], ['0.value: text']],
    [taints, ['a'], ['0: a taint {key, value, effect}']],
    [
      enforcements,
      ['none', 'pods', 'system-reserved', 'kube-reserved'],
      ['none', 'pods', 'system-reserved', 'kube-reserved'],
    ],
    [enforcements, ['pods', 'x'], ['1: one of none, pods, system-reserved, kube-reserved']],
  ])('%#', (reader, value, expected) => {
    expect(outcome(reader, value)).toEqual(expected);
  });
});

describe('a relay', () => {
  const relay = { port: 8_443, certificateFile: '/c', privateKeyFile: '/k' };

  it('has a port, its files and an address', () => {
    expect(outcome(relaySettings, relay)).toEqual({ ...relay, address: '' });
    expect(outcome(relaySettings, { ...relay, address: '::', port: 65_535 })).toMatchObject({
      address: '::',
      port: 65_535,
    });
  });

  it.each([
    ['x', [': {port, certificateFile, privateKeyFile}']],
    [{ ...relay, port: 0 }, ['port: a port, a whole number from 1 to 65535']],
    [{ ...relay, port: 65_536 }, ['port: a port, a whole number from 1 to 65535']],
    [{ ...relay, address: 5 }, ['address: the address to listen on']],
    [{ ...relay, more: 1 }, ['more: no such field']],
    [{ port: 1, certificateFile: 'c' }, ['certificateFile: an absolute path', 'privateKeyFile: an absolute path']],
  ])('%#', (value, faults) => {
    expect(outcome(relaySettings, value)).toEqual(faults);
  });
});

describe('lists in flags', () => {
  it.each([
    ['', {}],
    ['a=b', { a: 'b' }],
    [' a = b , c ,,d=, e==f', { a: 'b', c: '', d: '', e: '=f' }],
  ])('labels %j', (value, labels) => {
    expect(outcome(labelsText, value)).toEqual(labels);
  });

  it.each([
    ['', []],
    ['a=b:NoSchedule', [{ key: 'a', value: 'b', effect: 'NoSchedule' }]],
    [
      ' a:NoExecute , b=:X',
      [
        { key: 'a', effect: 'NoExecute' },
        { key: 'b', effect: 'X' },
      ],
    ],
    ['a', [': key=value:Effect, with commas between']],
    ['a:b:c', [': key=value:Effect, with commas between']],
    [':x', [': key=value:Effect, with commas between']],
    ['a=b', [': key=value:Effect, with commas between']],
    ['a:b,c', [': key=value:Effect, with commas between']],
  ])('taints %j', (value, expected) => {
    expect(outcome(taintsText, value)).toEqual(expected);
  });
});
