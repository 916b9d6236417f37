/** docs/validation.md, from the tables. */
import type { Constraint } from './constraint.ts';
import { VALIDATED } from './kinds.ts';
import { metadataConstraints } from './metadata.ts';
import { podSpec, templateOnly } from './pod-spec.ts';

const cell = (text: string): string => text.replaceAll('|', '\\|');

const checkedOf = (constraints: readonly Constraint[]) => constraints.filter((each) => each.kind === 'checked').length;

function rows(constraints: readonly Constraint[]): string {
  const lines = constraints.map((each) =>
    each.kind === 'checked'
      ? `| \`${cell(each.field)}\` | ${cell(each.rule)} | ${each.on} | ${each.cause.reason.replace('FieldValue', '')} |`
      : `| \`${cell(each.field)}\` | ${cell(each.rule)} | not checked | ${cell(each.reason)} |`,
  );
  return ['| field | rule | checked on | cause, or the reason why not |', '|---|---|---|---|', ...lines].join('\n');
}

/** Counts of the constraints of each kind, then the constraints. */
export function validationPage(): string {
  const counts = Object.entries(VALIDATED).map(([resource, { names, template, constraints }]) => {
    const metadata = checkedOf(metadataConstraints(names));
    const templates = template === undefined ? 0 : checkedOf(podSpec) + (template === '' ? 0 : checkedOf(templateOnly));
    const own = checkedOf(constraints);
    const left = constraints.length - own;
    return `| ${resource} | ${metadata} | ${templates || '–'} | ${own || 'not listed yet'} | ${left || '–'} |`;
  });
  const own = Object.entries(VALIDATED).filter(([, { constraints }]) => constraints.length > 0);
  return `# Validation

The API refuses an invalid object with status 422 and the causes of upstream: reason, field and message. The tables list
the constraints. A test sends a counterexample of each one that is checked.

\`test/conformance/validation\` has the tables and writes this page (\`WRITE_DOCS=1\`). A kind with "not listed yet" is
validated too: its own constraints are not in these tables.

## Constraints by kind

| kind | metadata | pod spec | own | own, not checked |
|---|---|---|---|---|
${counts.join('\n')}

## Metadata

Names are DNS subdomains in this example.

${rows(metadataConstraints('subdomain'))}

## Pod spec

Of pods and of every template, there below the path of the template.

${rows([...podSpec, ...templateOnly])}
${own.map(([resource, { constraints }]) => `\n## ${resource}\n\n${rows(constraints)}\n`).join('')}`;
}
