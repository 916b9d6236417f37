/** The message of upstream for a body of another kind than the path has. */
export const unknownConversion = (
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
  expectedKind: string,
): string =>
  `${kind} in version ${JSON.stringify(apiVersion)} cannot be handled as a ${expectedKind}: converting (${kind}) to (${expectedKind}): unknown conversion`;
