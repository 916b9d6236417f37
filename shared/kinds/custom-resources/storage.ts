/**
 * The storage of custom resources: plain objects under the name of their definition, `<plural>.<group>`.
 *
 * No object outlives its definition. A deletion first marks the definition, which changes its version. A creation is
 * committed only if the definition has the version that this process knows, and it is refused once the mark is known.
 * So after the mark no object is created, and the controller of definitions deletes all that there are
 * (functions/workloads/definitions). An update needs no such condition: it needs the object itself, unchanged.
 *
 * A creation that meets another version of the definition is tried again with that one. It was valid when it was
 * received, which is the order of two requests that overlap.
 *
 * Cost: two write units per creation.
 */

import type { StorageContext } from '../../api/kind-storage.ts';
import type { ResourceStorage, WriteResult } from '../../api/resource-storage.ts';
import { apiVersionOf } from '../../kubernetes/normal-form.ts';
import * as status from '../../kubernetes/status.ts';
import { holds } from '../../store/layout.ts';
import { OBJECT } from '../../store/object-record.ts';
import { objectKey } from '../../store/object-store.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../customresourcedefinitions/resource.ts';
import type { CustomKind, ResourceDescriptor } from '../descriptor.ts';
import type { KubeObject } from '../types.ts';

export function customResourceStorage(
  descriptor: ResourceDescriptor,
  custom: CustomKind,
  { plain, definitions }: Pick<StorageContext, 'plain' | 'definitions'>,
): ResourceStorage {
  const ref = { resource: CUSTOM_RESOURCE_DEFINITIONS.resource, namespace: '', name: custom.definition };
  const key = objectKey(ref, CUSTOM_RESOURCE_DEFINITIONS.shards);
  let definitionVersion = custom.definitionVersion;

  function refuseCreation(name: string): void {
    if (custom.isTerminating) throw terminating(descriptor, name);
  }

  /** A creation met another version of the definition. @throws StatusError 403 or 404 when it is deleted */
  async function refused(): Promise<WriteResult> {
    const definition = (await definitions.all()).find(({ metadata }) => metadata.name === custom.definition);
    if (definition?.metadata.uid !== custom.definitionUid) throw status.unknownPath();
    if (definition.metadata.deletionTimestamp !== undefined) throw terminating(descriptor, '');
    definitionVersion = Number(definition.metadata.resourceVersion);
    return { kind: 'conflict', ofAlong: true };
  }

  const storage = plain(
    { ...descriptor, group: '', resource: custom.definition },
    {
      together: (write) =>
        write.kind === 'create' ? [{ kind: 'check', key, when: holds(OBJECT.version, definitionVersion) }] : [],
      refused,
      selectableFields: (object) =>
        Object.fromEntries(Object.entries(descriptor.selectableFields).map(([field, read]) => [field, read(object)])),
    },
  );
  const apiVersion = apiVersionOf({ group: descriptor.group, version: custom.storageVersion });
  const toStored = (object: KubeObject): KubeObject => ({ ...object, apiVersion });
  /** The changes of a log are shared by watches, and so are their lines. */
  const served = new WeakMap<KubeObject, KubeObject>();
  const written = (result: WriteResult): WriteResult =>
    result.kind === 'written' ? { kind: 'written', object: custom.toServed(result.object) } : result;
  return {
    ...storage,
    async get(namespace, name) {
      const stored = await storage.get(namespace, name);
      return stored === undefined ? undefined : custom.toServed(stored);
    },
    async list(query) {
      // Defaults of a later schema make an object longer than its stored text.
      const { lengths: _stored, ...page } = await storage.list(query);
      return { ...page, items: page.items.map(custom.toServed) };
    },
    served(stored) {
      const object = served.get(stored) ?? custom.toServed(stored);
      served.set(stored, object);
      return object;
    },
    refuseCreation,
    async create(object, along) {
      refuseCreation(object.metadata.name ?? '');
      return written(await storage.create(toStored(object), along));
    },
    update: async (next, old, along) => written(await storage.update(toStored(next), old, along)),
  };
}

/** As upstream, by its words: pkg/apiserver/customresource_handler.go, forbidCreateAdmission. */
const terminating = (descriptor: ResourceDescriptor, name: string): status.StatusError =>
  status.forbidden(descriptor, name, 'create not allowed while custom resource definition is terminating');
