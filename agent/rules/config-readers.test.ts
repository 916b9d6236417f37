import { describe, expect, it } from 'vitest';
import * as read from './config-readers.ts';

/** The value, or `path: expectation` of each fault. */
function outcome<Value>(reader: read.Reader<Value>, value: unknown): Value | readonly string[] {
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
  const from3to5 = read.wholeNumber(3, 5);
  it.each<[unknown, unknown, read.Reader<unknown>]>([
    ['x', 'x', read.text],
    ['', '', read.text],
    [5, [': text'], read.text],
    [false, false, read.flag],
    ['true', [': true or false'], read.flag],
    ['true', true, read.flagText],
    ['0', false, read.flagText],
    ['yes', [': true or false'], read.flagText],
    [3, 3, from3to5],
    [5, 5, from3to5],
    [2, [': a whole number from 3 to 5'], from3to5],
    [6, [': a whole number from 3 to 5'], from3to5],
    [3.5, [': a whole number from 3 to 5'], from3to5],
    ['4', [': a whole number from 3 to 5'], from3to5],
    [2 ** 31 - 1, 2 ** 31 - 1, read.wholeNumber()],
    [-(2 ** 31), -(2 ** 31), read.wholeNumber()],
    [2 ** 31, [': a whole number from -2147483648 to 2147483647'], read.wholeNumber()],
    [-(2 ** 31) - 1, [': a whole number from -2147483648 to 2147483647'], read.wholeNumber()],
    ['-5', -5, read.wholeNumberText(-5, 5)],
    ['12', [': a whole number from -5 to 5'], read.wholeNumberText(-5, 5)],
    ['', [': a whole number from 0 to 5'], read.wholeNumberText(0, 5)],
    ['1 ', [': a whole number from 0 to 5'], read.wholeNumberText(0, 5)],
    ['x1', [': a whole number from 0 to 5'], read.wholeNumberText(0, 5)],
    ['0x1', [': a whole number from 0 to 5'], read.wholeNumberText(0, 5)],
    ['1m30s', 90_000, read.duration],
    ['0s', 0, read.duration],
    ['-1s', [DURATION], read.duration],
    [10, [DURATION], read.duration],
    ['x', [DURATION], read.duration],
  ])('%j is read as %j', (value, expected, reader) => {
    expect(outcome(reader, value)).toEqual(expected);
  });
});

describe('maps', () => {
  it.each<[unknown, unknown, read.Reader<unknown>]>([
    [{ a: 'x' }, { a: 'x' }, read.textMap],
    [{ a: 1, b: 'x', c: 2 }, ['a: text', 'c: text'], read.textMap],
    [[], [': a map'], read.textMap],
    [{ a: true }, { a: true }, read.flagMap],
    [{ a: 'true' }, ['a: true or false'], read.flagMap],
    [
      { cpu: '500m', memory: 1_024, 'ephemeral-storage': '0', pid: '100' },
      { cpu: '500m', memory: '1024', 'ephemeral-storage': '0', pid: '100' },
      read.reservation,
    ],
    [{ cpu: '-1' }, ['cpu: a quantity such as 500m or 100Mi, not negative'], read.reservation],
    [{ cpu: true }, ['cpu: a quantity such as 500m or 100Mi, not negative'], read.reservation],
    [{ gpu: '1' }, ['gpu: one of the resources cpu, memory, ephemeral-storage, pid'], read.reservation],
    [
      { 'memory.available': '1m', 'containerfs.available': 'x' },
      { 'memory.available': 60_000 },
      read.signalDurations(signals),
    ],
    [{ other: '1m' }, [`other: ${SIGNALS}`], read.signalDurations(signals)],
    [{ 'memory.available': 1 }, [`memory.available${DURATION}`], read.signalDurations(signals)],
  ])('%j is read as %j', (value, expected, reader) => {
    expect(outcome(reader, value)).toEqual(expected);
  });
});

describe('thresholds of eviction', () => {
  const threshold = (value: unknown) => outcome(read.evictionThresholds(signals), { 'memory.available': value });
  const refused = [`memory.available: ${THRESHOLD}`];

  it.each([
    ['100Mi', { kind: 'quantity', value: 100 * 2 ** 20 }],
    [5, { kind: 'quantity', value: 5 }],
    ['500m', { kind: 'quantity', value: 0.5 }],
    ['10%', { kind: 'percent', percent: 10 }],
    ['99.55%', { kind: 'percent', percent: 99.55 }],
  ])('%s is one', (value, expected) => {
    expect(threshold(value)).toEqual({ 'memory.available': expected });
  });

  it.each(['0%', '100%'])('%s is none', (value) => {
    expect(threshold(value)).toEqual({});
  });

  it.each(['0', '-1', 'x', '101%', '-5%', '1e1%', '%', '5.%', '5%%', '0100%', 'x5%', true, null, ['5']])(
    '%s is refused',
    (value) => {
      expect(threshold(value)).toEqual(refused);
    },
  );

  it('of signals that are not measured have no effect', () => {
    const others = ['allocatableMemory.available', 'containerfs.available', 'containerfs.inodesFree'];
    for (const each of others) {
      expect(outcome(read.evictionThresholds(signals), { [each]: '5' })).toEqual({});
      expect(outcome(read.minimumReclaims(signals), { [each]: '5' })).toEqual({});
    }
    expect(outcome(read.evictionThresholds(signals), { other: '5' })).toEqual([`other: ${SIGNALS}`]);
  });

  it('have reclaims: 0 is none', () => {
    const reclaim = (value: unknown) => outcome(read.minimumReclaims(signals), { 'memory.available': value });
    expect([reclaim('0'), reclaim(0), reclaim('5'), reclaim('100%')]).toEqual([
      {},
      {},
      { 'memory.available': { kind: 'quantity', value: 5 } },
      { 'memory.available': { kind: 'percent', percent: 100 } },
    ]);
    for (const value of ['0%', '-1', 'x', true]) expect(reclaim(value)).toEqual([`memory.available: ${RECLAIM}`]);
    expect(outcome(read.minimumReclaims(signals), { other: '5' })).toEqual([`other: ${SIGNALS}`]);
  });
});

describe('lists', () => {
  const grace = { priority: -5, shutdownGracePeriodSeconds: 0 };
  const GRACE = '{priority, shutdownGracePeriodSeconds}, both whole numbers, the seconds not negative';
  const taint = { key: 'a', value: 'b', effect: 'NoSchedule', timeAdded: 'x' };

  it.each<[unknown, unknown, read.Reader<unknown>]>([
    [[grace], [grace], read.priorityGraces],
    [{}, [': a list'], read.priorityGraces],
    [[grace, 5, { ...grace, more: 1 }], [`1: ${GRACE}`, '2.more: no such field'], read.priorityGraces],
    [[{ priority: 1 }], [`0: ${GRACE}`], read.priorityGraces],
    [[{ ...grace, shutdownGracePeriodSeconds: -1 }], [`0: ${GRACE}`], read.priorityGraces],
    [[{ ...grace, priority: 'x' }], [`0: ${GRACE}`], read.priorityGraces],
    [[taint], [taint], read.taints],
    [[{ ...taint, other: 'x' }], ['0.other: no such field'], read.taints],
    [[{ ...taint, value: 5 }], ['0.value: text'], read.taints],
    [['a'], ['0: a taint {key, value, effect}'], read.taints],
    [
      ['none', 'pods', 'system-reserved', 'kube-reserved'],
      ['none', 'pods', 'system-reserved', 'kube-reserved'],
      read.enforcements,
    ],
    [['pods', 'x'], ['1: one of none, pods, system-reserved, kube-reserved'], read.enforcements],
  ])('%j is read as %j', (value, expected, reader) => {
    expect(outcome(reader, value)).toEqual(expected);
  });
});

describe('a relay', () => {
  const relay = { port: 8_443, certificateFile: '/c', privateKeyFile: '/k' };

  it('has a port, its files and an address', () => {
    expect(outcome(read.relaySettings, relay)).toEqual({ ...relay, address: '' });
    expect(outcome(read.relaySettings, { ...relay, address: '::', port: 65_535 })).toMatchObject({
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
  ])('%j is refused: %j', (value, faults) => {
    expect(outcome(read.relaySettings, value)).toEqual(faults);
  });
});

describe('lists in flags', () => {
  it.each([
    ['', {}],
    ['a=b', { a: 'b' }],
    [' a = b , c ,,d=, e==f', { a: 'b', c: '', d: '', e: '=f' }],
  ])('labels %j', (value, labels) => {
    expect(outcome(read.labelsText, value)).toEqual(labels);
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
    expect(outcome(read.taintsText, value)).toEqual(expected);
  });
});
