/**
 * Objects that parameterize the bindings of policies: of built-in kinds, and of those that definitions add.
 *
 * Cost of a write that a policy is for: one read of the object, or of up to PARAMS_MAX objects that a selector chooses
 * from, for each binding. A custom kind is found in the copy of the definitions: one read unit per kind.
 */

import type { ReadDependencies } from '../api/call.ts';
import type { CustomKinds } from '../kinds/custom-resources/kinds.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import { resources } from '../kinds/registry.ts';
import type { KubeObject, ParamKind, ParamRef } from '../kinds/types.ts';
import { selectorFromSpec } from '../kubernetes/selectors.ts';

/** Objects that parameterize one binding. */
const PARAMS_MAX = 500;

/** Why the binding of a policy cannot be evaluated. */
class ConfigurationFault extends Error {}

export interface ParamDependencies extends Pick<ReadDependencies, 'storageOf'> {
  /** Kinds that definitions add. */
  readonly customs: Pick<CustomKinds, 'findKind'>;
}

export function groupAndVersionOf({ apiVersion = '' }: ParamKind): {
  readonly group: string;
  readonly version: string;
} {
  const [first = '', second] = apiVersion.split('/', 2);
  return second === undefined ? { group: '', version: first } : { group: first, version: second };
}

/** GROUP/KIND of those with rows that functions of controllers may not read. */
const UNREADABLE = /^(coordination|metrics|nodekeeper)\.|^\/Node$/;

/** The resource of a kind of parameters. undefined: it is not served, or its objects cannot be parameters. */
export async function paramDescriptor(
  { customs }: Pick<ParamDependencies, 'customs'>,
  paramKind: ParamKind,
): Promise<ResourceDescriptor | undefined> {
  const { kind = '' } = paramKind;
  const { group, version } = groupAndVersionOf(paramKind);
  const builtIn = resources.find((each) => each.kind === kind && each.group === group && each.version === version);
  if (builtIn !== undefined && UNREADABLE.test(`${group}/${kind}`)) return undefined;
  return builtIn ?? customs.findKind(group, version, kind);
}

/** Parameters of a binding. `undefined` in the list: it is evaluated without. A text: why it cannot be evaluated. */
type BindingParams = (
  paramKind: ParamKind | undefined,
  paramRef: ParamRef | undefined,
) => Promise<readonly (KubeObject | undefined)[] | string>;

/** For the bindings of one request. @param requestNamespace '' for a cluster-scoped object */
export function bindingParams(dependencies: ParamDependencies, requestNamespace: string): BindingParams {
  const kinds = new Map<string, Promise<ResourceDescriptor | undefined>>();
  return async (paramKind, paramRef) => {
    if (paramKind === undefined || paramRef === undefined) return [undefined];
    const name = `${paramKind.apiVersion}, Kind=${paramKind.kind}`;
    const found = kinds.get(name) ?? paramDescriptor(dependencies, paramKind);
    kinds.set(name, found);
    try {
      const descriptor = await found;
      if (descriptor !== undefined) return await readParams(dependencies, descriptor, paramRef, requestNamespace);
      throw new ConfigurationFault(`failed to find resource referenced by paramKind: '${name}'`);
    } catch (error) {
      if (error instanceof ConfigurationFault) return error.message;
      throw error;
    }
  };
}

async function readParams(
  { storageOf }: ParamDependencies,
  descriptor: ResourceDescriptor,
  { name = '', namespace = '', selector, parameterNotFoundAction }: ParamRef,
  requestNamespace: string,
): Promise<readonly KubeObject[]> {
  if (!descriptor.namespaced && namespace !== '') {
    throw new ConfigurationFault('paramRef.namespace must not be provided for a cluster-scoped `paramKind`');
  }
  const from = descriptor.namespaced ? namespace || requestNamespace : '';
  if (descriptor.namespaced && from === '') {
    const why = 'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources';
    throw new ConfigurationFault(why);
  }
  const storage = storageOf(descriptor);
  const found: KubeObject[] = [];
  if (name !== '') {
    const param = await storage.get(from, name);
    if (param !== undefined) found.push(param);
  } else {
    const selected = selectorFromSpec(selector);
    const { items, next } = await storage.list({ namespace: from, limit: PARAMS_MAX });
    if (next !== undefined) throw new ConfigurationFault(`more than ${PARAMS_MAX} objects to select parameters from`);
    found.push(...items.filter(({ metadata }) => selected.matches(metadata.labels ?? {})));
  }
  if (found.length === 0 && parameterNotFoundAction !== 'Allow') {
    throw new ConfigurationFault('no params found for policy binding with `Deny` parameterNotFoundAction');
  }
  return found;
}
