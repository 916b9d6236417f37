/**
 * The Priority admission plugin and the store of priority classes: which classes may go, and that one is the default.
 */
import { expect, it } from 'vitest';
import { APPLY, apiInMemory, MERGE } from '../support/api-in-memory.ts';

const CLASSES = '/apis/scheduling.k8s.io/v1/priorityclasses';
const SYSTEM = ['system-cluster-critical', 'system-node-critical'];

it.each(SYSTEM)('%s cannot be deleted', async (name) => {
  const api = apiInMemory();
  for (const query of ['', '?dryRun=All', '?gracePeriodSeconds=0']) {
    expect(await api.send('DELETE', `${CLASSES}/${name}${query}`)).toMatchObject({
      code: 403,
      body: {
        reason: 'Forbidden',
        message: `priorityclasses.scheduling.k8s.io "${name}" is forbidden: this is a system priority class and cannot be deleted`,
        details: { name, group: 'scheduling.k8s.io', kind: 'priorityclasses' },
      },
    });
  }
});

it('the classes of the system outlive a deletion of all', async () => {
  const api = apiInMemory();
  const before = (await api.send('GET', `${CLASSES}/${SYSTEM[0]}`)).body.metadata.uid;
  await api.send('POST', CLASSES, { body: { metadata: { name: 'own' }, value: 1 } });
  expect((await api.send('DELETE', CLASSES)).code).toBe(200);
  expect((await api.send('GET', `${CLASSES}/own`)).code).toBe(404);
  expect((await api.send('GET', `${CLASSES}/${SYSTEM[0]}`)).body.metadata.uid).toBe(before);
});

it('only one class may be the default, however it is asked for', async () => {
  const api = apiInMemory();
  await api.send('POST', CLASSES, { body: { metadata: { name: 'g1' }, value: 1, globalDefault: true } });
  await api.send('POST', CLASSES, { body: { metadata: { name: 'g2' }, value: 2 } });
  const message = (name: string) =>
    `priorityclasses.scheduling.k8s.io "${name}" is forbidden: PriorityClass g1 is already marked as default. Only one default can exist`;
  const g3 = { metadata: { name: 'g3' }, value: 3, globalDefault: true };
  expect(await api.send('POST', CLASSES, { body: g3 })).toMatchObject({ code: 403, body: { message: message('g3') } });
  const patch = { body: { globalDefault: true }, contentType: MERGE };
  expect(await api.send('PATCH', `${CLASSES}/g2`, patch)).toMatchObject({
    code: 403,
    body: { message: message('g2') },
  });
  const put = { body: { metadata: { name: 'g2' }, value: 2, globalDefault: true } };
  expect(await api.send('PUT', `${CLASSES}/g2`, put)).toMatchObject({ code: 403, body: { message: message('g2') } });
  const applied = { body: { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', ...g3 }, contentType: APPLY };
  expect((await api.send('PATCH', `${CLASSES}/g3?fieldManager=m`, applied)).code).toBe(403);
  // The default itself may be written, and may stop being the default.
  const described = { body: { description: 'd' }, contentType: MERGE };
  expect((await api.send('PATCH', `${CLASSES}/g1`, described)).code).toBe(200);
  await api.send('PATCH', `${CLASSES}/g1`, { body: { globalDefault: false }, contentType: MERGE });
  expect((await api.send('PATCH', `${CLASSES}/g2`, patch)).code).toBe(200);
});
