// Text in which names in backticks are code.

export function coded(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, place) => {
    if (place % 2 === 0) return part;
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
}
