import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLog } from '../../../test/support/agent-api.ts';
import { removeServiceFile, servedAddress, serviceFile } from './service-file.ts';

let rootDirectory: string;
beforeEach(() => {
  rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-services-'));
});
afterEach(() => rmSync(rootDirectory, { recursive: true }));

const cursors = { services: '1', endpointSlices: '2', networkPolicies: '3' };
const remembered = { objects: { services: [], endpointSlices: [], networkPolicies: [], cursors }, zone: 'north' };
const fileFor = (nodeName: string) =>
  serviceFile({ rootDirectory, nodeName, clusterId: 'one' }, '169.254.20.10', silentLog);

it('returns what was written, to the same node alone', async () => {
  expect(await fileFor('edge-1').read()).toBeUndefined();
  await fileFor('edge-1').write(remembered);
  expect(await fileFor('edge-1').read()).toEqual(remembered);
  expect(await fileFor('edge-2').read()).toBeUndefined();
});

it('names the address first, for the removal', async () => {
  expect(await servedAddress(rootDirectory)).toBeUndefined();
  await fileFor('edge-1').write(remembered);
  expect(readFileSync(join(rootDirectory, 'services.json'), 'utf8')).toMatch(/^\{"dnsAddress":"169\.254\.20\.10",/);
  expect(await servedAddress(rootDirectory)).toBe('169.254.20.10');
  await removeServiceFile(rootDirectory);
  expect(await servedAddress(rootDirectory)).toBeUndefined();
});

it('is nothing when it is not complete', async () => {
  writeFileSync(join(rootDirectory, 'services.json'), '{"dnsAddress":');
  expect(await fileFor('edge-1').read()).toBeUndefined();
});
