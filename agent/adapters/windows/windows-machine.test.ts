/** What it reads without Windows: from Node.js and its sockets. */
import { expect, it } from 'vitest';
import { until } from '../../../test/support/until.ts';
import { WindowsMachine } from './windows-machine.ts';

const socketsOpen = (): number => process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length;

it.each([4, 6] as const)('asks for the default address of IPv%i by a socket that it closes', async (family) => {
  const before = socketsOpen();
  const asked = new WindowsMachine({ rootDirectory: '/' }).defaultAddress(family);
  expect(socketsOpen()).toBe(before + 1);
  const address = await asked;
  // A machine without a route has none.
  if (address !== undefined) expect(address).toMatch(family === 4 ? /^\d+(\.\d+){3}$/ : /:/);
  await until(() => socketsOpen() <= before, { withinMs: 5_000, what: 'the socket is open' });
});
