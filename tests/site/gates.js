// One function a gate: each looks at the page as the reader sees it and returns a list of faults, empty when all is well.
window.gates = (() => {
  const article = () => document.querySelector("article") ?? document.body;
  const visible = (element) => element.checkVisibility();
  const name = (element) => {
    const id = element.id ? `#${element.id}` : "";
    const classes = typeof element.className === "string" ? element.className.trim().split(/\s+/).slice(0, 2) : [];
    return element.tagName.toLowerCase() + id + classes.filter(Boolean).map((c) => `.${c}`).join("");
  };
  const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  const inScrollBox = (element) => {
    for (let e = element; e && e !== document.body; e = e.parentElement) if (scrolls(e)) return true;
    return false;
  };

  const distorted = () => [...document.images].filter((image) => visible(image) && image.naturalWidth)
    .filter((image) => Math.abs((image.width * image.naturalHeight) / (image.height * image.naturalWidth) - 1) > 0.05)
    .map((image) => `${image.src.split("/").pop()} is drawn ${image.width} by ${image.height} px, out of proportion`);

  const layout = () => {
    const faults = distorted();
    const width = document.documentElement.clientWidth;
    const page = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
    if (page > width) faults.push(`the page is ${page} px wide in a window of ${width} px`);
    for (const element of article().querySelectorAll("*")) {
      const right = element.getBoundingClientRect().right;
      if (right > width + 1 && visible(element) && !inScrollBox(element))
        faults.push(`${name(element)} ends at ${Math.round(right)} px of ${width} px`);
    }
    return faults.slice(0, 5);
  };

  const formulas = () => {
    const faults = [...document.querySelectorAll("mjx-merror, [data-mjx-error]")]
      .map((e) => `error in a formula: ${e.textContent || e.getAttribute("data-mjx-error")}`);
    for (const formula of document.querySelectorAll(".math"))
      if (!formula.querySelector("mjx-container")) faults.push(`not typeset: ${formula.textContent.slice(0, 60)}`);
    const walker = document.createTreeWalker(article(), NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode())
      if (!text.parentElement.closest("pre, code, script, style, mjx-container, .math")
          && /\\[([]|\\begin\{|\$[^\s$][^$]*\$/.test(text.data))
        faults.push(`raw mathematics in the text: ${text.data.trim().slice(0, 60)}`);
    return faults;
  };

  const images = () => [...document.images].filter(visible).flatMap((image) => {
    const file = decodeURI(image.src.split("/").pop());
    const faults = [];
    if (!image.complete || image.naturalWidth === 0) faults.push(`${file} did not load`);
    if (!image.alt.trim()) faults.push(`${file} has no alt text`);
    else if (/\.(png|svg|jpe?g|gif)$/i.test(image.alt) || file.startsWith(image.alt))
      faults.push(`the alt text of ${file} is a file name: ${image.alt}`);
    return faults;
  });

  const headings = () => {
    const found = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter(visible);
    const tops = found.filter((h) => h.tagName === "H1").length;
    const faults = tops === 1 ? [] : [`${tops} headings of the first level`];
    found.forEach((heading, i) => {
      const jump = Number(heading.tagName[1]) - (i ? Number(found[i - 1].tagName[1]) : 0);
      if (jump > 1) faults.push(`${heading.tagName} follows ${i ? found[i - 1].tagName : "nothing"}: ${heading.innerText}`);
    });
    return faults;
  };

  const anchors = () => {
    const ids = [...document.querySelectorAll("[id]")].filter((e) => !e.closest("svg")).map((e) => e.id);
    return [...new Set(ids.filter((id, i) => ids.indexOf(id) !== i))].map((id) => `the id ${id} stands more than once`);
  };

  const badges = () => [...document.querySelectorAll(".verdict")].flatMap((badge) => {
    const kind = [...badge.classList].find((c) => c.startsWith("verdict-"))?.slice(8);
    const known = ["holds", "under", "corrected", "false", "untestable", "pending"].includes(kind);
    return [...(badge.innerText.trim() ? [] : [`a badge ${kind} without text`]),
            ...(known ? [] : [`an unknown kind of badge: ${badge.className}`])];
  });

  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {  // any CSS colour, color-mix() included, as painted
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.unshift(rgba(getComputedStyle(e).backgroundColor));
    return layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const luminance = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);

  const contrast = () => {
    const faults = new Set();
    for (const element of document.body.querySelectorAll("*")) {
      const ownText = [...element.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
      if (!ownText || !visible(element) || element.closest("mjx-container, script, style, svg, [aria-hidden=true]")) continue;
      const style = getComputedStyle(element);
      const [size, weight] = [parseFloat(style.fontSize), Number(style.fontWeight)];
      const needed = size >= 24 || (size >= 18.66 && weight >= 700) ? 3 : 4.5;
      const below = ground(element);
      const [low, high] = [luminance(over(rgba(style.color), below)), luminance(below)].sort((x, y) => x - y);
      const ratio = (high + 0.05) / (low + 0.05);
      if (ratio < needed) faults.add(`${name(element)} "${element.innerText?.trim().slice(0, 30)}" has contrast ${ratio.toFixed(2)}`);
    }
    return [...faults].slice(0, 10);
  };

  return { layout, formulas, images, headings, anchors, badges, contrast };
})();
