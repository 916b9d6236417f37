/** Which admission checks a request passes before it writes, by its resource and its user. */

import { priorityclasses } from '../kinds/registry.ts';
import type { Call, ServeDependencies } from '../request/call.ts';
import type { WriteOptions } from '../verbs/write-options.ts';
import { admitPriorityClass } from './admit-creation.ts';
import { nodeRestriction, type RestrictedVerb } from './restrict-node.ts';

/** Refusals that depend on the stored objects. Nodes may not write priority classes at all, so those need no restriction. */
export function admitWrite(
  dependencies: ServeDependencies,
  call: Call,
  verb: RestrictedVerb,
): Pick<WriteOptions, 'admit' | 'admitStored'> {
  const { descriptor, target } = call;
  if (descriptor !== priorityclasses) return nodeRestriction(dependencies, call, verb);
  return { admit: (next) => admitPriorityClass(dependencies, target.name, next) };
}
