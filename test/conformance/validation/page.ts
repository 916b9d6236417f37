/** docs/validation.md, from the tables. */
import { resources } from '../../../shared/api/kinds/registry.ts';
import type { Constraint } from './constraint.ts';
import { OTHERWISE_WRITTEN, VALIDATED } from './kinds.ts';
import { metadataConstraints } from './metadata.ts';
import { podSpec, templateOnly } from './pod-spec.ts';

const cell = (text: string): string => text.replaceAll('|', '\\|');

const REASON = { Invalid: '' } as Readonly<Record<string, string>>;

/** One rule in words. Without an addition it is checked when the object is created, and its cause is Invalid. */
function ruleOf(each: Constraint): string {
  if (each.kind === 'leftOut') return `${each.rule}: not checked, ${each.reason}`;
  const reason = each.cause.reason.replace('FieldValue', '');
  const additions = [each.on === 'create' ? '' : each.on, REASON[reason] ?? reason].filter((text) => text !== '');
  return additions.length === 0 ? each.rule : `${each.rule} (${additions.join(', ')})`;
}

/** A row has all rules of a field. Fields with the same rules share a row. */
function rows(constraints: readonly Constraint[]): string {
  const rules = Map.groupBy(constraints, ({ field }) => field);
  const fields = Map.groupBy(rules.keys(), (field) => (rules.get(field) ?? []).map(ruleOf).join('; '));
  const lines = [...fields].map(
    ([text, names]) => `| ${names.map((name) => `\`${cell(name)}\``).join(', ')} | ${cell(text)} |`,
  );
  return ['| field | rules |', '|---|---|', ...lines].join('\n');
}

const count = (constraints: readonly Constraint[], kind: Constraint['kind']): number =>
  constraints.filter((each) => each.kind === kind).length;

/** Counts of the constraints of each kind, then the constraints. */
export function validationPage(): string {
  const counts = Object.entries(VALIDATED).map(([resource, { source, names, template, constraints }]) => {
    const metadata = names === undefined ? '–' : count(metadataConstraints(names), 'checked');
    const templates =
      template === undefined ? 0 : count(podSpec, 'checked') + (template === '' ? 0 : count(templateOnly, 'checked'));
    const own = count(constraints, 'checked') || 'none';
    const left = count(constraints, 'leftOut') || '–';
    return `| ${resource} | ${source} | ${metadata} | ${templates || '–'} | ${own} | ${left} |`;
  });
  const own = Object.entries(VALIDATED).filter(([, { constraints }]) => constraints.length > 0);
  const readOnly = resources.filter(({ verbs }) => !verbs.includes('create')).map(({ resource }) => resource);
  return `# Validation

The API refuses an invalid object with status 422 and the causes of upstream: reason, field and message. The tables list
the constraints. A test sends a counterexample of each one that is checked. A rule without an addition is checked when the
object is created, and its cause is Invalid. Another cause, or another time (update, status), is in parentheses.

\`test/conformance/validation\` has the tables and writes this page (\`WRITE_DOCS=1\`). It fails for a kind that is
served and not listed. The constraints are those of Kubernetes 1.30 to 1.34, the newest sources that were at hand.

## Constraints by kind

- Own: constraints besides those of the metadata and of the pod spec.
- Without meaning: constraints of upstream on what this API does not have. Their rows have the reason.

| kind | upstream, or page | metadata | pod spec | own | without meaning |
|---|---|---|---|---|---|
${counts.join('\n')}

No client writes these kinds: ${readOnly.sort().join(', ')}. Enrolment writes ${OTHERWISE_WRITTEN.join(', ')}.

## Metadata

Names are DNS subdomains in this example.

${rows(metadataConstraints('subdomain'))}

## Pod spec

Of pods and of every template, there below the path of the template.

${rows([...podSpec, ...templateOnly])}
${own.map(([resource, { constraints = [] }]) => `\n## ${resource}\n\n${rows(constraints)}\n`).join('')}`;
}
