import { expect, it } from 'vitest';
import { defaultRouteInterfaces } from './routes.ts';

const HEAD = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT';
const v4 = (name: string, { destination = '00000000', flags = '0003', metric = '0', mask = '00000000' } = {}) =>
  `${name}\t${destination}\t0102A8C0\t${flags}\t0\t0\t${metric}\t${mask}\t0\t0\t0   `;
const ZERO = '0'.repeat(32);
const v6 = (name: string, { destination = ZERO, length = '00', flags = '00000003', metric = '00000400' } = {}) =>
  `${destination} ${length} ${ZERO} 00 fe80${'0'.repeat(27)}1 ${metric} 00000001 00000000 ${flags}     ${name}`;
const table = (...lines: readonly string[]): string => `${lines.join('\n')}\n`;

it('the default routes of IPv4 are those to everything that are up, the lowest metric first', () => {
  const lines = [
    HEAD,
    v4('wlan0', { metric: '600' }),
    v4('eth0', { metric: '99' }),
    v4('down', { flags: '0002' }),
    v4('reject', { flags: '0201' }),
    v4('net', { destination: '0002A8C0' }),
    v4('half', { mask: '00000080' }),
    'short\t00000000',
  ];
  expect(defaultRouteInterfaces(table(...lines), 4)).toEqual(['eth0', 'wlan0']);
  expect(defaultRouteInterfaces('', 4)).toEqual([]);
});

it('the default routes of IPv6 are likewise, with metrics in hexadecimal', () => {
  const lines = [
    v6('wlan0', { metric: '00000400' }),
    v6('eth0', { metric: '0000000a' }),
    v6('tun0', { metric: '0000000b' }),
    v6('down', { flags: '00000002' }),
    v6('lo', { flags: '00200200' }),
    v6('net', { destination: `2001${'0'.repeat(28)}` }),
    v6('half', { length: '01' }),
    `${ZERO} 00`,
  ];
  expect(defaultRouteInterfaces(table(...lines), 6)).toEqual(['eth0', 'tun0', 'wlan0']);
  expect(defaultRouteInterfaces('', 6)).toEqual([]);
});
