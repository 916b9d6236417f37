import { expect, it } from 'vitest';
import { apiInMemory } from '../../../test/support/api-in-memory.ts';

const DEFAULT = '/api/v1/namespaces/default';
const SLICE = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes';

it('reads of a new cluster at once are all answered, and one of them creates the Service', async () => {
  const api = apiInMemory();
  const paths = ['/api/v1/services', '/api/v1/services', '/api/v1/namespaces/default/services'];
  const answers = await Promise.all(paths.map((path) => api.send('GET', path)));
  expect(answers.map(({ code }) => code)).toEqual([200, 200, 200]);
  expect((await api.send('GET', '/api/v1/namespaces/default/services/kubernetes')).code).toBe(200);
});

it('the API has a Service with an address, Endpoints and an EndpointSlice, also after their deletion', async () => {
  const api = apiInMemory();
  const read = async () => {
    const [service, endpoints, slice] = await Promise.all(
      [`${DEFAULT}/services/kubernetes`, `${DEFAULT}/endpoints/kubernetes`, SLICE].map((path) => api.send('GET', path)),
    );
    expect(service?.body.spec).toMatchObject({ clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443 }] });
    expect(endpoints?.body.subsets).toEqual([
      { addresses: [{ ip: '10.96.0.1' }], ports: [{ name: 'https', port: 443, protocol: 'TCP' }] },
    ]);
    expect(slice?.body).toMatchObject({ endpoints: [{ addresses: ['10.96.0.1'] }], ports: [{ port: 443 }] });
  };
  await read();
  await api.send('DELETE', `${DEFAULT}/endpoints/kubernetes`);
  await api.send('DELETE', SLICE);
  await read();
  expect((await api.send('GET', `${DEFAULT}/endpoints`)).body.items).toHaveLength(1);
});

it('a ComponentStatus says that the API is healthy, and cannot be written', async () => {
  const api = apiInMemory();
  const statuses = '/api/v1/componentstatuses';
  const [listed] = (await api.send('GET', statuses)).body.items;
  expect((await api.send('GET', `${statuses}/nodekeeper`)).body).toMatchObject(listed);
  expect(listed.conditions).toEqual([{ type: 'Healthy', status: 'True', message: 'ok' }]);
  const table = await api.send('GET', statuses, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' });
  expect(table.body.rows[0].cells).toEqual(['nodekeeper', 'Healthy', 'ok', '']);
  expect((await api.send('DELETE', `${statuses}/nodekeeper`)).code).toBe(405);
  expect((await api.send('GET', `${statuses}/other`)).code).toBe(404);
});

it('the endpoints follow the address of the API, and stay when a process knows none', async () => {
  let address: { ip: string; port: number } | undefined = { ip: '192.0.2.7', port: 6443 };
  const api = apiInMemory({ apiAddress: () => address });
  const paths = [`${DEFAULT}/endpoints/kubernetes`, SLICE];
  const endpointsOf = async () => {
    const [endpoints, slice] = (await Promise.all(paths.map((path) => api.send('GET', path)))).map(({ body }) => body);
    return [endpoints.subsets[0].addresses[0].ip, endpoints.subsets[0].ports[0].port, slice.endpoints[0].addresses[0]];
  };
  expect(await endpointsOf()).toEqual(['192.0.2.7', 6443, '192.0.2.7']);
  const { resourceVersion } = (await api.send('GET', SLICE)).body.metadata;
  expect((await api.send('GET', SLICE)).body.metadata).toMatchObject({ resourceVersion });

  address = { ip: '192.0.2.8', port: 443 };
  expect(await endpointsOf()).toEqual(['192.0.2.8', 443, '192.0.2.8']);

  address = undefined;
  expect(await endpointsOf()).toEqual(['192.0.2.8', 443, '192.0.2.8']);
  expect((await api.send('GET', `${DEFAULT}/services/kubernetes`)).body.spec.clusterIP).toBe('10.96.0.1');
});
