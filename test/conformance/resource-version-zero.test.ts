/** A resourceVersion "0" in a body is none, as upstream: kinds that permit unconditional updates accept it. */
import { expect, it } from 'vitest';
import { findStored } from '../../shared/kinds/resources.ts';
import { apiInMemory, MERGE } from '../support/api-in-memory.ts';
import { VALIDATED } from './validation/kinds.ts';

/** AllowUnconditionalUpdate is false in pkg/registry. */
const CONDITIONAL = [
  'csidrivers',
  'csinodes',
  'csistoragecapacities',
  'leases',
  'poddisruptionbudgets',
  'runtimeclasses',
  'volumeattachments',
];

const NEEDS_VERSION = {
  code: 422,
  body: {
    details: {
      causes: [
        {
          reason: 'FieldValueInvalid',
          field: 'metadata.resourceVersion',
          message: 'Invalid value: 0x0: must be specified for an update',
        },
      ],
    },
  },
};

const UPDATED = Object.entries(VALIDATED).filter(([resource]) => findStored(resource)?.verbs.includes('update'));

it.each(UPDATED)('%s: a write with resourceVersion "0" is unconditional', async (resource, kind) => {
  // Configurations of webhooks are stored where webhooks are called.
  const api = apiInMemory({ webhooksOf: () => ({ mutators: () => [], validate: async () => {} }) });
  const { group = '', version = '', namespaced } = findStored(resource) ?? {};
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const collection = `${root}/${namespaced === true ? 'namespaces/default/' : ''}${resource}`;
  const created = await api.send('POST', collection, {
    body: { ...kind.base, metadata: { name: 'x', resourceVersion: '0' } },
  });
  expect(created).toMatchObject({ code: 201 });
  const metadata = { ...created.body.metadata, annotations: { changed: 'yes' }, resourceVersion: '0' };
  const expected = CONDITIONAL.includes(resource)
    ? NEEDS_VERSION
    : { code: 200, body: { metadata: { annotations: { changed: 'yes' } } } };
  expect(await api.send('PUT', `${collection}/x`, { body: { ...created.body, metadata } })).toMatchObject(expected);
  const patch = { metadata: { annotations: { changed: 'yes' }, resourceVersion: '0' } };
  expect(await api.send('PATCH', `${collection}/x`, { body: patch, contentType: MERGE })).toMatchObject(expected);
  const stale = { metadata: { annotations: { changed: 'no' }, resourceVersion: '1' } };
  expect(await api.send('PATCH', `${collection}/x`, { body: stale, contentType: MERGE })).toMatchObject({ code: 409 });
});
