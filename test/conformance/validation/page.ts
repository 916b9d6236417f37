/** docs/validation.md: the constraints of upstream that are not checked, and those of our own kinds. */
import type { Constraint, LeftOut } from './constraint.ts';
import { VALIDATED } from './kinds.ts';
import { metadataConstraints } from './metadata.ts';
import { podSpec, templateOnly } from './pod-spec.ts';

/** The words of a rule: signs for bounds, and a noun without its article. */
const wordsOf = (rule: string): string =>
  (/ (is|has|may|owns) /.test(rule) ? rule : rule.replace(/^(an?|the) /, ''))
    .replace(/\bat least (\d)/, '≥ $1')
    .replace(/\bat most (\d)/, '≤ $1')
    .replace(/\bgreater than (\d)/, '> $1');

const code = (text: string): string => `\`${text}\``;

interface Section {
  readonly name: string;
  readonly constraints: readonly Constraint[];
}

/** No difference: another test shows it, or a default makes it hold, as upstream. */
const isNoDifference = ({ reason }: LeftOut): boolean => /^tested in |^(it is|they are) set to /.test(reason);

/** A row for each reason, with the fields of every section that it holds for. */
function leftOutRows(sections: readonly Section[]): string {
  const found = sections.flatMap(({ name, constraints }) =>
    constraints.filter((each) => each.kind === 'leftOut').map((each) => ({ name, each })),
  );
  const byReason = Map.groupBy(
    found.filter(({ each }) => !isNoDifference(each)),
    ({ each }) => each.reason,
  );
  return [...byReason]
    .map(([reason, those]) => {
      const fields = [...Map.groupBy(those, ({ name }) => name)].map(
        ([name, of]) => `${name}: ${of.map(({ each }) => `${code(each.field)} (${wordsOf(each.rule)})`).join(', ')}`,
      );
      return `| ${fields.join('; ')} | ${reason} |`;
    })
    .join('\n');
}

/** A line has all rules of a field. */
const ownLines = (constraints: readonly Constraint[]): string =>
  [...Map.groupBy(constraints, ({ field }) => field)]
    .map(([field, each]) => `- ${code(field)}: ${each.map(({ rule }) => wordsOf(rule)).join('; ')}`)
    .join('\n');

const isOwn = (source: string): boolean => source.startsWith('docs/');

/** The template of a CronJob has the constraints of a Job, which are listed there. */
const isOfJob = (kind: string, { field }: Constraint): boolean =>
  kind === 'cronjobs' && field.startsWith('spec.jobTemplate.');

export function validationPage(): string {
  const kinds = Object.entries(VALIDATED);
  const sections: Section[] = [
    { name: 'metadata', constraints: metadataConstraints('subdomain') },
    { name: 'pods and templates', constraints: [...podSpec, ...templateOnly] },
    ...kinds
      .filter(([, { source }]) => !isOwn(source))
      .map(([name, { constraints }]) => ({ name, constraints: constraints.filter((each) => !isOfJob(name, each)) })),
  ];
  const own = kinds
    .filter(([, { source }]) => isOwn(source))
    .map(
      ([name, { source, constraints }]) =>
        `\n## ${name}\n\nSee [${source.replace('docs/', '')}](${source.replace('docs/', '')}).\n\n${ownLines(constraints)}\n`,
    );
  return `# Validation

The API refuses an invalid object as kube-apiserver does: status 422, and upstream's reason, field and message for each
cause. \`test/conformance/validation\` has the constraints of Kubernetes 1.30 to 1.34 as data, and sends a counterexample
of each one that is checked. It fails for a kind that is served and not listed.

This page is written by that test (\`WRITE_DOCS=1\`). It has what is not checked, and the constraints of our own kinds;
\`[0]\` is any item.

## Not checked

| constraint | why |
|---|---|
${leftOutRows(sections)}
${own.join('')}`;
}
