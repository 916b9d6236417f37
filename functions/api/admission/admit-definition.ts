/**
 * Validation of definitions. It is loaded when a definition is written: it needs the engine of patterns, and CEL for
 * one with rules, and few processes ever write one.
 */

import type { Call } from '../../../shared/api/call.ts';
import { asDefinition } from '../../../shared/kinds/customresourcedefinitions/definition.ts';
import { customresourcedefinitions } from '../../../shared/kinds/customresourcedefinitions/serve.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { WriteOptions } from '../verbs/write-options.ts';

/** @throws StatusError 422 */
export const definitionAdmission =
  ({ target }: Call): NonNullable<WriteOptions['admit']> =>
  async (next, stored) => {
    if (next === undefined) return;
    const [{ validateDefinition }, { compilePattern }, { mentionsRules }] = await Promise.all([
      import('../../../shared/kinds/customresourcedefinitions/validate.ts'),
      import('../../../shared/patterns.ts'),
      import('../../../shared/kinds/custom-resources/schema-node.ts'),
    ]);
    const { ruleFaults } = mentionsRules(next['spec'])
      ? await import('../../../shared/kinds/custom-resources/rules.ts')
      : { ruleFaults: undefined };
    const causes = validateDefinition(asDefinition(next), stored && asDefinition(stored), {
      subresource: target.subresource,
      compilePattern,
      ...(ruleFaults && { ruleFaults }),
    });
    if (causes.length > 0) throw status.invalid(customresourcedefinitions, next.metadata.name ?? '', causes);
  };
