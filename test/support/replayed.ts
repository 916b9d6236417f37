import type { DecisionDraft, DecisionRecord, Outcome } from '../../shared/decisions/decision-record.ts';

/** What a controller's rules return for the inputs of a draft, as they are read back from its record. */
export function replayed(draft: DecisionDraft, rules: object): Outcome {
  const record = JSON.parse(JSON.stringify(draft)) as DecisionRecord;
  const rule = (rules as Record<string, (inputs: object, record: DecisionRecord) => Outcome>)[record.rule];
  if (rule === undefined) throw new Error(`no rule ${record.rule}`);
  return rule(record.inputs, record);
}
