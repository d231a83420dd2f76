// The texts of a page with less contrast than WCAG 2 AA asks for, and what they have.
() => {
  const AA = 4.5, AA_LARGE = 3;

  function channels(colour) {
    const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
    return { rgb: [red, green, blue], alpha };
  }

  function luminance(rgb) {
    const [red, green, blue] = rgb.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function ground(node) {
    for (let at = node; at; at = at.parentElement) {
      const { rgb, alpha } = channels(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return [255, 255, 255];
  }

  function contrast(node) {
    const both = [luminance(channels(getComputedStyle(node).color).rgb), luminance(ground(node))];
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  }

  const pale = [];
  for (const node of document.querySelectorAll("body *")) {
    const text = Array.from(node.childNodes, (child) => child.nodeType === 3 ? child.data : "").join("").trim();
    if (!text || !node.checkVisibility() || node.closest(":disabled")) continue;
    const style = getComputedStyle(node), size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const found = contrast(node);
    if (found < (isLarge ? AA_LARGE : AA)) pale.push(`${text.slice(0, 40)}: ${found.toFixed(2)}`);
  }
  return pale;
}
