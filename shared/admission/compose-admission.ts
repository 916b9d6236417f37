/** Policies for objects that controllers create, with what expressions may read: parameters, namespaces and access. */

import { authorizer, nodeGraph } from '../access/authorizer.ts';
import type { StorageOptions } from '../api/kind-storage.ts';
import { composeStorages } from '../api/request-dependencies.ts';
import { customKinds } from '../kinds/custom-resources/kinds.ts';
import { viewerRules } from '../kinds/roles/default-policies.ts';
import type { Log } from '../observability/log.ts';
import { admitByPolicies } from './admit-by-policies.ts';
import { controllerObjects } from './controller-objects.ts';
import type { AdmitObjects } from './created-object.ts';
import type { AdmissionPolicies } from './policy-memory.ts';

/** With the caches of a process: create them once. */
export function composeAdmission(
  options: StorageOptions & { readonly log: Log; readonly admissionPolicies: AdmissionPolicies },
): AdmitObjects {
  const { storageOf, policies, definitions, sections } = composeStorages({ ...options, makesInitialObjects: false });
  const dependencies = {
    storageOf,
    authorizer: authorizer({ policies, nodeGraph: nodeGraph({ storageOf }), viewerRules }),
    customs: customKinds({ definitions, sections, loadPatterns: () => import('../patterns.ts') }),
    admissionPolicies: options.admissionPolicies,
    log: options.log,
  };
  return controllerObjects({
    clock: options.clock,
    // No webhook is called: an answer lasts as long as the reads of the store, which are bounded.
    pause: () => new Promise<never>(() => undefined),
    admission: (call) => admitByPolicies(dependencies, call),
  });
}
