import { expect, it } from 'vitest';
import { type ServicesReading, servicesFindings } from './doctor-services.ts';

const config = {
  services: { endpoints: 'zone', dnsAddress: '169.254.20.10', clusterDomain: 'cluster.local' },
} as const;
const good: ServicesReading = { filterFault: undefined, isForwarding: true, answersNames: true };
const found = (read: Partial<ServicesReading>, isRunning: boolean | undefined = true): string =>
  servicesFindings(config, { ...good, ...read }, isRunning)
    .map(({ outcome, message }) => `${outcome}: ${message}`)
    .join();

it('says nothing where Services are not routed', () => {
  expect(servicesFindings({}, undefined, true)).toEqual([]);
});

it('says what is missing for the rules and for names', () => {
  expect(found({})).toBe('ok: routed by nftables, names at 169.254.20.10');
  expect(found({ filterFault: 'the program nft is not installed' })).toBe('failed: the program nft is not installed');
  expect(found({ answersNames: false })).toBe('failed: 169.254.20.10 does not answer names of the cluster');
  expect(found({ answersNames: false }, false)).toBe('ok: nftables can be written');
  expect(found({ isForwarding: false })).toMatch(/^warning: net.ipv4.ip_forward is 0/);
});
