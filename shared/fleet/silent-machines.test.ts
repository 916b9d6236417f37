import { expect, it } from 'vitest';
import { parseSilentMachines, silentMachinesText } from './silent-machines.ts';

it('a text is read as it was written', () => {
  expect(silentMachinesText('hub', ['node-b', 'node-a', 'node-b'])).toBe('hub node-a,node-b');
  expect(silentMachinesText('machine', [])).toBe('machine ');
  expect(parseSilentMachines('hub node-a,node-b')).toEqual({ role: 'hub', names: ['node-a', 'node-b'] });
  expect(parseSilentMachines('machine ')).toEqual({ role: 'machine', names: [] });
});

it('a text holds 32 names and 1,000 characters at most', () => {
  const names = Array.from({ length: 40 }, (_, index) => `node-${String(index).padStart(2, '0')}`);
  expect(parseSilentMachines(silentMachinesText('hub', names))?.names).toEqual(names.slice(0, 32));
  const long = Array.from({ length: 20 }, (_, index) => `${'n'.repeat(200)}${String(index).padStart(2, '0')}`);
  expect(parseSilentMachines(silentMachinesText('hub', long))?.names).toEqual(long.slice(0, 4));
  // `hub `, four names with a comma behind each, and the rest.
  const filling = (rest: number) => [...long.slice(0, 4), 'o'.repeat(rest)];
  const rest = 1_000 - 4 - 4 * 203;
  expect(silentMachinesText('hub', filling(rest))).toHaveLength(1_000);
  expect(parseSilentMachines(silentMachinesText('hub', filling(rest)))?.names).toHaveLength(5);
  expect(parseSilentMachines(silentMachinesText('hub', filling(rest + 1)))?.names).toHaveLength(4);
});

it.each([
  'hub',
  ' node-a',
  'relay node-a',
  'hub node-b,node-a',
  'hub node-a,node-a',
  'hub node-a,',
  'hub ,',
  'hub -a',
  'hub a_b',
  'hub node-a node-b',
  `hub ${'a'.repeat(254)}`,
  `hub ${Array.from({ length: 33 }, (_, index) => `n-${100 + index}`).join(',')}`,
])('refuses %j', (text) => {
  expect(parseSilentMachines(text)).toBeUndefined();
});
