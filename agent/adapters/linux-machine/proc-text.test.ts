import { describe, expect, it } from 'vitest';
import { countCpuList, countProcessors, cpuBusySeconds, memoryFields, osName, taskCount } from './proc-text.ts';
import { defaultRouteInterfaces } from './routes.ts';

describe('the texts of the kernel', () => {
  it('have fields of memory, with and without a unit', () => {
    expect(memoryFields('MemTotal:       16 kB\nActive(anon):   7 kB\nHugePages: 0\n\nno number\nx:y 5')).toEqual({
      MemTotal: 16,
      'Active(anon)': 7,
      HugePages: 0,
    });
    expect(memoryFields('inactive_file 4096\nanon 12')).toEqual({ inactive_file: 4_096, anon: 12 });
  });

  it.each([
    ['0', 1],
    ['0-3', 4],
    ['0-3,5,8-9', 7],
    ['', 0],
    ['x', 0],
    ['1-', 0],
    ['10-12\n', 0],
    ['8-11', 4],
    ['100-101', 2],
    ['x3', 0],
  ])('list %j processors', (list, count) => {
    expect(countCpuList(list)).toBe(count);
  });

  it('count processors by their lines', () => {
    expect(countProcessors('processor\t: 0\nmodel name\t: processor : x\n\nprocessor\t: 1\n')).toBe(2);
    expect(countProcessors('processor: 0\nprocessor  : 1\n')).toBe(2);
    expect(countProcessors('Processor: ARM\n')).toBe(0);
  });

  it('have the busy time of all processors: not idle, and guests once', () => {
    const stat = 'cpu  100 200 400 99999 8888 1000 2000 777 555 333\ncpu0 1 1 1 1 1 1 1\nintr 5';
    expect(cpuBusySeconds(stat)).toBe(37);
    expect(cpuBusySeconds('cpu  100')).toBe(1);
    expect(cpuBusySeconds('cpu0 5 5 5')).toBe(0);
    expect(cpuBusySeconds('xcpu 500\ncpu 100\n')).toBe(1);
  });

  it('have the number of tasks', () => {
    expect(taskCount('0.10 0.20 0.30 2/345 6789\n')).toBe(345);
    expect(taskCount('')).toBe(0);
  });

  it.each([
    ['NAME=x\nPRETTY_NAME="Debian GNU/Linux 12"\nID=debian', 'Debian GNU/Linux 12'],
    ['PRETTY_NAME=\'Some "OS"\'', 'Some "OS"'],
    ['PRETTY_NAME=Alpine ', 'Alpine'],
    ['PRETTY_NAME="open', '"open'],
    ['PRETTY_NAME=The "OS"', 'The "OS"'],
    ['PRETTY_NAME="The" OS', '"The" OS'],
    ['PRETTY_NAME=', 'Linux'],
    ['MY_PRETTY_NAME=x', 'Linux'],
  ])('name the system in %j', (text, name) => {
    expect(osName(text)).toBe(name);
  });
});

describe('the default routes', () => {
  const v4 = (name: string, more: { to?: string; flags?: string; metric?: string; mask?: string } = {}) =>
    [
      name,
      more.to ?? '00000000',
      '0101A8C0',
      more.flags ?? '0003',
      '0',
      '0',
      more.metric ?? '100',
      more.mask ?? '00000000',
      '0',
    ].join('\t');
  const v6 = (name: string, more: { to?: string; length?: string; flags?: string; metric?: string } = {}) =>
    [
      more.to ?? '0'.repeat(32),
      more.length ?? '00',
      '0'.repeat(32),
      '00',
      'fe80'.padEnd(32, '0'),
      more.metric ?? '00000400',
      '00000001',
      '00000000',
      more.flags ?? '00000003',
      `   ${name}`,
    ].join(' ');

  it('of IPv4 are up and to everywhere, the lowest metric first', () => {
    const table = [
      'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU',
      v4('late', { metric: '600' }),
      v4('first', { metric: '99' }),
      v4('down', { flags: '0002' }),
      v4('rejected', { flags: '0201' }),
      v4('host', { flags: '0007' }),
      v4('network', { to: '0001A8C0' }),
      v4('half', { mask: '00000080' }),
      '',
    ].join('\n');
    expect(defaultRouteInterfaces(table, 4)).toEqual(['first', 'host', 'late']);
  });

  it('of IPv6 have their metric in hexadecimal', () => {
    const table = [
      v6('late', { metric: '00000a00' }),
      v6('first', { metric: '00000100' }),
      v6('lo', { flags: '00200200' }),
      v6('down', { flags: '00000002' }),
      v6('rejected', { flags: '00000201' }),
      v6('network', { to: 'fe80'.padEnd(32, '0') }),
      v6('half', { length: '01' }),
      v6('mapped', { to: `${'0'.repeat(32)}0` }),
      'short line',
      '',
    ].join('\n');
    expect(defaultRouteInterfaces(table, 6)).toEqual(['first', 'late']);
    expect(defaultRouteInterfaces('', 6)).toEqual([]);
  });
});
