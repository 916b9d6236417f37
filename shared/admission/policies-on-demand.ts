/**
 * Policies of the cluster for objects that controllers create, in a process that serves no API. The kinds of the API
 * and the language of expressions are loaded when there is a policy with a binding: they are half of a bundle.
 *
 * Cost: without bindings one read unit per 5 s in which objects are created (policy-memory.ts), and nothing at rest.
 */

import { shardsOf } from '../kinds/resources.ts';
import { changeLog } from '../store/change-log.ts';
import type { WorkDependencies } from '../ticks/dependencies.ts';
import type { AdmitObjects } from './created-object.ts';
import { admissionPolicies } from './policy-memory.ts';

export function policiesOnDemand(common: WorkDependencies & Required<Pick<WorkDependencies, 'pause'>>): AdmitObjects {
  const { items, clock, objects } = common;
  const changes = changeLog({ items, clock, shardsOf });
  const policies = admissionPolicies({
    changes,
    async list(resource, { limit, continueAfter }) {
      const page = await objects.list({ resource, limit, ...(continueAfter !== undefined && { continueAfter }) });
      return { items: page.objects, ...(page.next !== undefined && { next: page.next }) };
    },
  });
  let loading: Promise<AdmitObjects> | undefined;
  return async (creator, of, made) => {
    const { validating, mutating } = await policies.hooks(clock.nowMs());
    if (validating.length + mutating.length === 0) return { kind: 'decided', objects: made };
    loading ??= import('./compose-admission.ts').then(({ composeAdmission }) =>
      composeAdmission({ ...common, changes, admissionPolicies: policies }),
    );
    const admitObjects = await loading;
    return admitObjects(creator, of, made);
  };
}
