/** Which admission checks a request passes before it writes, by its resource and its user. */

import * as status from '../../kube/status.ts';
import { priorityclasses } from '../kinds/registry.ts';
import type { Call, ServeDependencies } from '../request/call.ts';
import type { WriteOptions } from '../verbs/write-options.ts';
import { admitPriorityClass } from './admit-creation.ts';
import { escalationCheck, isPolicy } from './escalation.ts';
import { nodeRestriction, type RestrictedVerb } from './restrict-node.ts';

type Admission = Pick<WriteOptions, 'admit' | 'admitStored'>;

/** Refusals that depend on stored objects. */
export function admitWrite(dependencies: ServeDependencies, call: Call, verb: RestrictedVerb): Admission {
  const admission = admissionOf(dependencies, call, verb);
  if (verb === 'create' || verb === 'delete') return admission;
  return {
    ...admission,
    async admit(next, stored) {
      if (stored === undefined) await requireCreate(dependencies, call);
      await admission.admit?.(next, stored);
    },
  };
}

/** An update or an apply that creates needs the verb `create` too, as upstream. */
async function requireCreate({ authorizer }: ServeDependencies, { target, user, nowMs }: Call): Promise<void> {
  const access = await authorizer.authorize(user, { verb: 'create', ...target }, nowMs);
  if (access.allowed) return;
  const { subresource, namespace, name } = target;
  const denied = { user: user.username, verb: 'create', target, subresource, namespace, name };
  throw status.accessDenied(denied, access.reason);
}

/** NodeRestriction skips priority classes, because no node may write them. */
function admissionOf(dependencies: ServeDependencies, call: Call, verb: RestrictedVerb): Admission {
  const { descriptor, target } = call;
  if (isPolicy(descriptor)) {
    const { admit, ...restriction } = nodeRestriction(dependencies, call, verb);
    const check = escalationCheck(dependencies.authorizer, call);
    return {
      ...restriction,
      async admit(next, stored) {
        await admit?.(next, stored);
        await check(next, stored);
      },
    };
  }
  if (descriptor !== priorityclasses) return nodeRestriction(dependencies, call, verb);
  return { admit: (next) => admitPriorityClass(dependencies, target.name, next) };
}
