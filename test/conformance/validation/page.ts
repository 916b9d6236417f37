/** docs/validation.md, from the tables. */
import { resources } from '../../../shared/kinds/registry.ts';
import type { Constraint } from './constraint.ts';
import { OTHERWISE_WRITTEN, VALIDATED } from './kinds.ts';
import { metadataConstraints } from './metadata.ts';
import { podSpec, templateOnly } from './pod-spec.ts';

/** One rule in words. Without an addition it is checked when the object is created, and its cause is Invalid. */
function ruleOf(each: Constraint): string {
  if (each.kind === 'leftOut') return `${each.rule}: not checked, ${each.reason}`;
  const reason = each.cause.reason.replace('FieldValue', '');
  const additions = [...(each.on === 'create' ? [] : [each.on]), ...(reason === 'Invalid' ? [] : [reason])];
  return additions.length === 0 ? each.rule : `${each.rule} (${additions.join(', ')})`;
}

/** A line has all rules of a field. Fields with the same rules share a line. */
function lines(constraints: readonly Constraint[]): string {
  const rules = Map.groupBy(constraints, ({ field }) => field);
  const fields = Map.groupBy(rules.keys(), (field) => (rules.get(field) ?? []).map(ruleOf).join('; '));
  return [...fields].map(([text, names]) => `- ${names.map((name) => `\`${name}\``).join(', ')}: ${text}`).join('\n');
}

/** Where the constraints come from, and which of the shared tables hold as well. */
function sourcesOf({ source, template }: (typeof VALIDATED)[string]): string {
  if (template === undefined) return source;
  return `${source}; [pod spec](#pod-spec)${template === '' ? '' : ` below \`${template}\``}`;
}

/** The constraints of metadata and pod spec, then those of each kind. */
export function validationPage(): string {
  const readOnly = resources
    .filter(({ verbs }) => !verbs.includes('create'))
    .map(({ resource, group }) => (group === '' ? resource : `${resource}.${group}`));
  const kinds = Object.entries(VALIDATED).map(([resource, each]) => {
    const own = each.constraints.length === 0 ? '' : `\n${lines(each.constraints)}\n`;
    return `\n## ${resource}\n\n${sourcesOf(each)}\n${own}`;
  });
  return `# Validation

The API refuses an invalid object with status 422 and the causes of upstream: reason, field and message. The lists below
have the constraints. A test sends a counterexample of each one that is checked. A rule without an addition is checked when the
object is created, and its cause is Invalid. Another cause, or another time (update, status), is in parentheses.

\`test/conformance/validation\` has them as data and writes this page (\`WRITE_DOCS=1\`). It fails for a kind that is
served and not listed. The constraints are those of Kubernetes 1.30 to 1.34, the newest sources that were at hand. Each
kind is named with upstream's function, or with the page of a kind of ours.

No client writes these kinds: ${readOnly.sort().join(', ')}. Enrolment writes ${OTHERWISE_WRITTEN.join(', ')}.

## Metadata

Every kind but bootstraptokens has these constraints. Names are DNS subdomains in this example.

${lines(metadataConstraints('subdomain'))}

## Pod spec

For pods and every template, there below the path of the template.

${lines([...podSpec, ...templateOnly])}
${kinds.join('')}`;
}
